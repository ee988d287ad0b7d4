"""A method that asks no planner: the question is the one unit."""

from __future__ import annotations

from leadline.kernel.context import Context
from leadline.kernel.plugin import Plugin
from leadline.research.events import Planned, Unit
from leadline.research.methods.adaptive.method import Adaptive
from leadline.research.methods.adaptive.plan import CheckedPlan
from leadline.research.methods.seam import MethodResult, Methods, Run


class Unplanned(Adaptive):
    name = "unplanned"

    async def _plan(self, run: Run) -> CheckedPlan | MethodResult:
        unit = Unit(id="u1", title="all of it", question=run.request.question)
        plan = CheckedPlan(brief="", units=(unit,))
        run.append(Planned(brief=plan.brief, units=plan.units))
        return plan


async def apply(ctx: Context, config: None) -> None:
    ctx.get(Methods).register(ctx, Unplanned(1))


plugin = Plugin("unplanned", apply, needs=(Methods,))
