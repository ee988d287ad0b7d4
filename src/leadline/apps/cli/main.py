"""From the words of the command line to a command, and from what became of it to an exit code."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from leadline.apps.cli.arguments import COMMANDS, overview
from leadline.apps.cli.exits import Exit, Quit, debugging, told, told_defect
from leadline.apps.cli.parser import Given
from leadline.apps.cli.streams import catch_reports, document, say
from leadline.kernel.errors import LeadlineError, did_you_mean


def run(arguments: Sequence[str]) -> NoReturn:
    """Run a command and end the process with its exit code."""
    raise SystemExit(int(exit_code(arguments)))


def exit_code(arguments: Sequence[str]) -> int:
    """Run a command; returns the exit code."""
    catch_reports()
    try:
        return _run(arguments)
    except Quit as ending:
        _trace()
        if ending.message:
            say(f"leadline: {ending.message}")
        return ending.code
    except LeadlineError as error:
        _trace()
        say(f"leadline: {told(error)}")
        return Exit.FAILED
    except KeyboardInterrupt:
        say("leadline: stopped")
        return Exit.CANCELLED
    except Exception as defect:  # noqa: BLE001 - a person gets a line; the traceback is for those who ask for it
        _trace()
        say(f"leadline: {told_defect(defect)}")
        return Exit.FAILED


def _trace() -> None:
    if debugging():
        say(traceback.format_exc().rstrip())


def _run(arguments: Sequence[str]) -> int:
    if not arguments:
        say(overview())
        return Exit.USAGE
    name, *rest = arguments
    if name in ("-h", "--help", "help"):
        document(overview())
        return Exit.DONE
    command = next((one for one in COMMANDS if one.name == name), None)
    if command is None and name.startswith("-"):
        raise Quit(Exit.USAGE, f"{name!r} stands where the command has to; see: leadline --help")
    if command is None:
        hint = did_you_mean(name, [one.name for one in COMMANDS])
        raise Quit(Exit.USAGE, f"there is no command {name!r}{hint}; see: leadline --help")
    parser = command.parser()
    if any(word in ("-h", "--help") for word in rest[: rest.index("--") if "--" in rest else None]):
        document(parser.format_help())
        return Exit.DONE
    return _WORK[name](parser.given(rest))


def _research(given: Given) -> Exit:
    from leadline.apps.cli.research import ResearchCommand, run_research

    return run_research(
        ResearchCommand(
            question=" ".join(given.question),
            corpus=tuple(given.corpus),
            method=given.method,
            breadth=given.breadth,
            format=given.format,
            language=given.language,
            purpose=given.purpose,
            context=given.context,
            output=given.output,
            bundle=given.bundle_to,
            as_json=given.as_json,
            model=given.model,
            base_url=given.base_url,
            profile=given.profile,
            patches=tuple(given.patch),
        )
    )


def _agent(given: Given) -> Exit:
    from leadline.apps.cli.agent import AgentCommand, run_agent

    return run_agent(
        AgentCommand(
            task=" ".join(given.task),
            corpus=tuple(given.corpus),
            as_json=given.as_json,
            model=given.model,
            base_url=given.base_url,
            profile=given.profile,
            patches=tuple(given.patch),
        )
    )


def _resume(given: Given) -> Exit:
    from leadline.apps.cli.resume import ResumeCommand, run_resume

    return run_resume(
        ResumeCommand(
            id=given.id,
            task=" ".join(given.task),
            output=given.output,
            bundle=given.bundle_to,
            as_json=given.as_json,
            model=given.model,
            base_url=given.base_url,
            profile=given.profile,
            patches=tuple(given.patch),
        )
    )


def _verify(given: Given) -> Exit:
    from leadline.apps.cli.verify import run_verify

    return run_verify(given.bundle, expect=given.expect, as_json=given.as_json)


def _show(given: Given) -> Exit:
    from leadline.apps.cli.stored import run_show

    return run_show(given.id, report=given.report, as_json=given.as_json)


def _audit(given: Given) -> Exit:
    from leadline.apps.cli.audit import AuditCommand, run_audit

    return run_audit(
        AuditCommand(
            id=given.id,
            as_json=given.as_json,
            model=given.model,
            base_url=given.base_url,
            profile=given.profile,
            patches=tuple(given.patch),
        )
    )


def _export(given: Given) -> Exit:
    from leadline.apps.cli.stored import run_export

    return run_export(given.id, given.file)


def _config(given: Given) -> Exit:
    from leadline.apps.cli.config import run_config_show

    return run_config_show(given.profile, tuple(given.patch))


def _doctor(given: Given) -> Exit:
    from leadline.apps.cli.doctor import run_doctor

    return run_doctor()


_WORK: Mapping[str, Callable[[Given], Exit]] = {
    "research": _research,
    "agent": _agent,
    "resume": _resume,
    "verify": _verify,
    "show": _show,
    "audit": _audit,
    "export": _export,
    "config": _config,
    "doctor": _doctor,
}
