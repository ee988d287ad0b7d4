"""The commands, their options, and what an error becomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from leadline.apps.cli.exits import Exit, Quit, leave, say
from leadline.kernel.errors import LeadlineError

app = typer.Typer(
    name="leadline",
    help="Deep research you can audit: a report in which every sentence can be checked.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
config_app = typer.Typer(no_args_is_help=True, help="What is composed, and where each value comes from.")
app.add_typer(config_app, name="config")

Model = Annotated[
    str | None, typer.Option(help="Model as PROVIDER/NAME; default: the embedded extractive one.")
]
BaseUrl = Annotated[str | None, typer.Option(help="Address of an OpenAI-compatible server for --model.")]
Profile = Annotated[
    str | None, typer.Option(help="Composition to start from: a shipped name or a YAML file.")
]
Patches = Annotated[
    list[Path] | None, typer.Option("--patch", help="YAML patch over the composition; repeatable.")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command()
def research(
    question: Annotated[list[str], typer.Argument(help="What you want to know.")],
    corpus: Annotated[list[Path] | None, typer.Option(help="Folder or file to search; repeatable.")] = None,
    method: Annotated[str, typer.Option(help="How the research is done.")] = "adaptive",
    breadth: Annotated[str | None, typer.Option(help="focused, balanced or broad: 1, 2 or 3 units.")] = None,
    format: Annotated[str | None, typer.Option(help="report, brief or memo.")] = None,  # noqa: A002
    language: Annotated[str | None, typer.Option(help="Language of the report.")] = None,
    purpose: Annotated[str | None, typer.Option(help="What the answer is for.")] = None,
    context: Annotated[str | None, typer.Option(help="What the researcher should know.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the report here (.md, .html or .json).")] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="Write report, evidence and sources into one file.")
    ] = None,
    as_json: AsJson = False,
    model: Model = None,
    base_url: BaseUrl = None,
    profile: Profile = None,
    patch: Patches = None,
) -> None:
    """Answer a question from documents, with citations that can be checked."""
    from leadline.apps.cli.research import ResearchCommand, run_research

    run_research(
        ResearchCommand(
            question=" ".join(question),
            corpus=tuple(corpus or ()),
            method=method,
            breadth=breadth,
            format=format,
            language=language,
            purpose=purpose,
            context=context,
            output=output,
            bundle=bundle,
            as_json=as_json,
            model=model,
            base_url=base_url,
            profile=profile,
            patches=tuple(patch or ()),
        )
    )


@app.command()
def agent(
    task: Annotated[list[str], typer.Argument(help="What the agent should do.")],
    corpus: Annotated[list[Path] | None, typer.Option(help="What its deep_research tool may search.")] = None,
    as_json: AsJson = False,
    model: Model = None,
    base_url: BaseUrl = None,
    profile: Profile = None,
    patch: Patches = None,
) -> None:
    """Run one agent for one turn with the tools of the profile."""
    from leadline.apps.cli.agent import run_agent

    run_agent(
        " ".join(task),
        as_json=as_json,
        model=model,
        base_url=base_url,
        profile=profile,
        patches=tuple(patch or ()),
        corpus=tuple(corpus or ()),
    )


@app.command()
def verify(
    bundle: Annotated[Path, typer.Argument(help="A .leadline file.")],
    expect: Annotated[str | None, typer.Option(help="Root digest that the bundle must have.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check a bundle offline: every byte, every quote, every deterministic check."""
    from leadline.apps.cli.verify import run_verify

    run_verify(bundle, expect=expect, as_json=as_json)


@app.command()
def show(
    id: Annotated[str, typer.Argument(metavar="ID", help="A run or a session.")],  # noqa: A002
    report: Annotated[
        bool, typer.Option("--report", help="The report of a run instead of the transcript.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the transcript of a session, or the report of a run."""
    from leadline.apps.cli.show import run_show

    run_show(id, report=report, as_json=as_json)


@app.command()
def audit(
    id: Annotated[str, typer.Argument(metavar="ID", help="A run or a session.")],  # noqa: A002
    as_json: AsJson = False,
    model: Model = None,
    base_url: BaseUrl = None,
    profile: Profile = None,
    patch: Patches = None,
) -> None:
    """Prove from its log what a session and its children sent to the model. Give the options it ran with."""
    from leadline.apps.cli.audit import AuditCommand, run_audit

    run_audit(
        AuditCommand(
            id=id,
            as_json=as_json,
            model=model,
            base_url=base_url,
            profile=profile,
            patches=tuple(patch or ()),
        )
    )


@config_app.command("show")
def config_show(profile: Profile = None, patch: Patches = None) -> None:
    """Print the composed plugins with the origin of each value."""
    from leadline.apps.cli.config import run_config_show

    run_config_show(profile, tuple(patch or ()))


@app.command()
def doctor() -> None:
    """Say what works here and what is missing, one line each."""
    from leadline.apps.cli.doctor import run_doctor

    run_doctor()


@app.command()
def version() -> None:
    """Print the version."""
    from leadline.version import __version__
    from leadline.apps.cli.exits import document

    document(f"leadline {__version__}")


def run(arguments: Sequence[str]) -> None:
    """Run a command; ends the process with its exit code."""
    try:
        app(args=list(arguments), prog_name="leadline")
    except Quit as ending:
        if ending.message:
            say(f"leadline: {ending.message}")
        leave(ending.code)
    except LeadlineError as error:
        say(f"leadline: {error}")
        leave(Exit.FAILED)
