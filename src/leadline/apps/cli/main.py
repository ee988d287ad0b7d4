"""From the words of the command line to a command, and from what became of it to an exit code."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TypedDict

from leadline.apps.cli.arguments import COMMANDS, GROUPS, overview
from leadline.apps.cli.exits import Exit, Quit, debugging, told, told_defect
from leadline.apps.cli.parser import Command, Given
from leadline.apps.cli.streams import catch_reports, document, say
from leadline.apps.sdk.options import BudgetOptions
from leadline.kernel.errors import LeadlineError, did_you_mean

_HELP = ("-h", "--help", "help")


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
        if _of_signal(defect):
            say("leadline: stopped")
            return Exit.CANCELLED
        say(f"leadline: {told_defect(defect)}")
        return Exit.FAILED


def _of_signal(defect: BaseException) -> bool:
    """Whether it is what Python made of a signal: one that comes while a class is made is no KeyboardInterrupt."""
    cause = defect.__cause__ or defect.__context__
    return cause is not None and (isinstance(cause, KeyboardInterrupt) or _of_signal(cause))


def _trace() -> None:
    if debugging():
        say(traceback.format_exc().rstrip())


def _run(arguments: Sequence[str]) -> int:
    if not arguments:
        say(overview())
        return Exit.USAGE
    name, *rest = arguments
    if name in _HELP:
        document(overview())
        return Exit.DONE
    if name in GROUPS:
        if not rest:
            say(overview(name))
            return Exit.USAGE
        if rest[0] in _HELP:
            document(overview(name))
            return Exit.DONE
        name, *rest = f"{name} {rest[0]}", *rest[1:]
    command = _command(name)
    parser = command.parser()
    if any(word in ("-h", "--help") for word in rest[: rest.index("--") if "--" in rest else None]):
        document(parser.format_help())
        return Exit.DONE
    given = parser.given(rest)
    if not command.over_store:
        return _WORK[command.name](given)
    from leadline.apps.cli.running import patched

    with patched(given.patch):
        return _WORK[command.name](given)


def _command(name: str) -> Command:
    command = next((one for one in COMMANDS if one.name == name), None)
    if command is not None:
        return command
    group, _, second = name.rpartition(" ")
    where = f"leadline {group}".rstrip()
    if second.startswith("-"):
        raise Quit(Exit.USAGE, f"{second!r} stands where the command has to; see: {where} --help")
    names = [one.name for one in COMMANDS]
    names = [one.split()[1] for one in names if one.startswith(f"{group} ")] if group else [*names, *GROUPS]
    hint = did_you_mean(second, names)
    raise Quit(Exit.USAGE, f"there is no command {name!r}{hint}; see: {where} --help")


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
            budget=_budget(given),
            output=given.output,
            bundle=given.bundle_to,
            as_json=given.as_json,
            **_composed(given),
        )
    )


class _Composed(TypedDict):
    """What a command runs on, as it was typed."""

    model: str | None
    base_url: str | None
    profile: str | None
    patches: tuple[Path, ...]


def _composed(given: Given) -> _Composed:
    return {
        "model": given.model,
        "base_url": given.base_url,
        "profile": given.profile,
        "patches": tuple(given.patch),
    }


def _budget(given: Given) -> BudgetOptions:
    """The ceilings that were typed."""
    options: BudgetOptions = {
        "max_tokens": given.max_tokens,
        "max_cost": given.max_cost,
        "max_calls": given.max_calls,
        "max_seconds": given.max_time,
    }
    if "keep" in given:
        options["keep"] = given.keep
    return options


def _agent(given: Given) -> Exit:
    from leadline.apps.cli.agent import AgentCommand, run_agent

    return run_agent(
        AgentCommand(
            task=" ".join(given.task),
            corpus=tuple(given.corpus),
            budget=_budget(given),
            as_json=given.as_json,
            **_composed(given),
        )
    )


def _resume(given: Given) -> Exit:
    from leadline.apps.cli.resume import ResumeCommand, run_resume

    return run_resume(
        ResumeCommand(
            id=given.id,
            task=" ".join(given.task),
            corpus=tuple(given.corpus),
            budget=_budget(given),
            output=given.output,
            bundle=given.bundle_to,
            as_json=given.as_json,
            **_composed(given),
        )
    )


def _verify(given: Given) -> Exit:
    from leadline.apps.cli.verify import run_verify

    return run_verify(given.bundle, expect=given.expect, as_json=given.as_json)


def _show(given: Given) -> Exit:
    from leadline.apps.cli.stored import run_show

    return run_show(given.id, report=given.report, as_json=given.as_json)


def _usage(given: Given) -> Exit:
    from leadline.apps.cli.usage import run_usage

    return run_usage(given)


def _context(given: Given) -> Exit:
    from leadline.apps.cli.context import ContextCommand, run_context

    return run_context(
        ContextCommand(
            id=given.id,
            as_json=given.as_json,
            compact=given.compact,
            undo=given.undo,
            **_composed(given),
        )
    )


def _audit(given: Given) -> Exit:
    from leadline.apps.cli.audit import AuditCommand, run_audit

    return run_audit(
        AuditCommand(
            id=given.id,
            as_json=given.as_json,
            **_composed(given),
        )
    )


def _replay(given: Given) -> Exit:
    from leadline.apps.cli.replay import ReplayCommand, run_replay

    return run_replay(
        ReplayCommand(
            id=given.id,
            roles=given.roles,
            method=given.method,
            checks=given.checks,
            as_json=given.as_json,
            **_composed(given),
        )
    )


def _export(given: Given) -> Exit:
    from leadline.apps.cli.stored import run_export

    return run_export(given.id, given.file)


def _sessions_list(given: Given) -> Exit:
    from leadline.apps.cli.sessions import run_list

    return run_list(given, runs=False)


def _sessions_search(given: Given) -> Exit:
    from leadline.apps.cli.sessions import run_search

    return run_search(given)


def _sessions_fork(given: Given) -> Exit:
    from leadline.apps.cli.sessions import run_fork

    return run_fork(given)


def _sessions_rename(given: Given) -> Exit:
    from leadline.apps.cli.sessions import run_rename

    return run_rename(given)


def _sessions_delete(given: Given) -> Exit:
    from leadline.apps.cli.retention import run_delete

    return run_delete(given, runs=False)


def _sessions_export(given: Given) -> Exit:
    from leadline.apps.cli.retention import run_export

    return run_export(given.id, given.file_to, as_json=given.as_json)


def _sessions_import(given: Given) -> Exit:
    from leadline.apps.cli.retention import run_import

    return run_import(given)


def _sessions_archive(given: Given) -> Exit:
    from leadline.apps.cli.retention import run_archive

    return run_archive(given)


def _sessions_gc(given: Given) -> Exit:
    from leadline.apps.cli.retention import run_collect

    return run_collect(given)


def _sessions_prune(given: Given) -> Exit:
    from leadline.apps.cli.retention import run_prune

    return run_prune(given)


def _runs_list(given: Given) -> Exit:
    from leadline.apps.cli.sessions import run_list

    return run_list(given, runs=True)


def _runs_show(given: Given) -> Exit:
    from leadline.apps.cli.stored import run_show

    return run_show(given.id, report=given.report, as_json=given.as_json, only_run=True)


def _runs_export(given: Given) -> Exit:
    from leadline.apps.cli.retention import run_run_export

    return run_run_export(given.id, given.file)


def _runs_delete(given: Given) -> Exit:
    from leadline.apps.cli.retention import run_delete

    return run_delete(given, runs=True)


def _config(given: Given) -> Exit:
    from leadline.apps.cli.config import run_config_show

    return run_config_show(given.profile, tuple(given.patch))


def _models_list(given: Given) -> Exit:
    from leadline.apps.cli.models import run_list

    return run_list(given)


def _models_test(given: Given) -> Exit:
    from leadline.apps.cli.models import run_test

    return run_test(given)


def _models_add(given: Given) -> Exit:
    from leadline.apps.cli.models_change import run_add

    return run_add(given)


def _models_remove(given: Given) -> Exit:
    from leadline.apps.cli.models_change import run_remove

    return run_remove(given)


def _models_default(given: Given) -> Exit:
    from leadline.apps.cli.models_change import run_default

    return run_default(given)


def _models_price(given: Given) -> Exit:
    from leadline.apps.cli.models_price import run_price

    return run_price(given)


def _models_limits(given: Given) -> Exit:
    from leadline.apps.cli.models_limits import run_limits

    return run_limits(given)


def _login(given: Given) -> Exit:
    from leadline.apps.cli.login import run_login

    return run_login(given)


def _doctor(given: Given) -> Exit:
    from leadline.apps.cli.doctor import run_doctor

    return run_doctor()


_WORK: Mapping[str, Callable[[Given], Exit]] = {
    "research": _research,
    "agent": _agent,
    "resume": _resume,
    "verify": _verify,
    "show": _show,
    "context": _context,
    "audit": _audit,
    "usage": _usage,
    "replay": _replay,
    "export": _export,
    "sessions list": _sessions_list,
    "sessions search": _sessions_search,
    "sessions show": _show,
    "sessions fork": _sessions_fork,
    "sessions rename": _sessions_rename,
    "sessions delete": _sessions_delete,
    "sessions export": _sessions_export,
    "sessions import": _sessions_import,
    "sessions archive": _sessions_archive,
    "sessions gc": _sessions_gc,
    "sessions prune": _sessions_prune,
    "runs list": _runs_list,
    "runs show": _runs_show,
    "runs export": _runs_export,
    "runs delete": _runs_delete,
    "models list": _models_list,
    "models test": _models_test,
    "models add": _models_add,
    "models remove": _models_remove,
    "models default": _models_default,
    "models price": _models_price,
    "models limits": _models_limits,
    "login": _login,
    "config": _config,
    "doctor": _doctor,
}
