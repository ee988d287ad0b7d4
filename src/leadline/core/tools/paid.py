"""How a tool pays for something: a search, a reader, an embedding, a model that it asks by itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from leadline.core.session.events import Charged
from leadline.core.spend.account import Account
from leadline.core.spend.meter import Charge, Meter, PaidCall, Paying
from leadline.core.tools.invocation import ToolInvocation


@asynccontextmanager
async def paid(
    call: ToolInvocation,
    what: str,
    *,
    purpose: str = "",
    counted: bool = False,
    prompt_tokens: int = 0,
    most_output: int | None = None,
) -> AsyncGenerator[Paying]:
    """Make one paid call inside the body of a tool; set `usage` on what is yielded where tokens were reported.

    What it may use is reserved with the agent that the tool works for, and it stands in the line of `what`. When the
    block ends, however it ends, it is charged, and written to the agent's log as `spend/charged`. One block for each
    call of the service: three calls for one query are three blocks. Ask no model of the same agent inside of it.

    Args:
        call: the call of the tool.
        what: who is paid: the name of a service, or `provider/model`.
        purpose: what for; empty: the tool's name.
        counted: whether it is charged by tokens.
        prompt_tokens: estimate of them, where they are counted.
        most_output: tokens that the answer may have at most.

    Raises:
        BudgetReached: a ceiling is reached, cost is limited and the price is not known, or the wait was too long. A
            tool may let it pass: the model is told.
        ServiceUnavailable: there is no meter.
    """
    caller = call.caller

    def log(charge: Charge) -> None:
        if call.session is not None:
            place = call.session.place
            call.session.append(
                Charged(
                    turn=place.turn or None,
                    step=place.step or None,
                    call_id=call.call_id,
                    what=charge.what,
                    purpose=charge.purpose,
                    usage=charge.usage,
                    cost=charge.cost,
                    state=charge.state,
                )
            )

    request = PaidCall(
        account=caller.account or Account(caller.agent_id or "nobody"),
        what=what,
        purpose=purpose or call.name,
        prompt_tokens=prompt_tokens,
        most_output=most_output,
        group=caller.group,
        counted=counted,
    )
    async with call.ctx.get(Meter).paid(request, log) as paying:
        yield paying
