"""`leadline agent`: one agent, one turn."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec

from leadline.apps.cli.exits import Exit, Quit, document, leave, say, usage_errors
from leadline.apps.sdk.app import AgentReply, Leadline


def run_agent(
    task: str,
    *,
    as_json: bool,
    model: str | None,
    base_url: str | None,
    profile: str | None,
    patches: tuple[Path, ...],
    corpus: tuple[Path, ...],
) -> None:
    """Print the agent's last words; exit 0 when the turn completed.

    Raises:
        Quit: the task is blank, or the composition or the model cannot be used; nothing was started.
    """
    if not task.strip():
        raise Quit(Exit.USAGE, "the task is blank; say what the agent should do")
    app = Leadline(
        profile=profile or ("research" if corpus else "headless"),
        patches=patches,
        model=model,
        base_url=base_url,
        corpus=corpus,
    )
    reply = anyio.run(_turn, app, task)
    if as_json:
        document(msgspec.json.encode({"text": reply.text, "session": reply.session, "end": reply.end}))
    elif reply.text:
        document(reply.text)
    if not reply.completed:
        say(f"leadline: the turn ended {_why(reply)}; see: leadline show {reply.session}")
    leave(Exit.DONE if reply.completed else _exit_of(reply))


async def _turn(app: Leadline, task: str) -> AgentReply:
    async with usage_errors(), app:
        return await app.agent(task)


def _why(reply: AgentReply) -> str:
    end = reply.end
    detail = (
        end.error or (end.failure.message if end.failure else "") or (end.cause.detail if end.cause else "")
    )
    return f"{end.reason}: {detail}" if detail else end.reason


def _exit_of(reply: AgentReply) -> Exit:
    return Exit.CANCELLED if reply.end.reason in ("aborted", "interrupted") else Exit.FAILED
