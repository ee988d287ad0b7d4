"""Whatever plugins need and want of each other, and whatever is done to them at once, the same rules hold."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import anyio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.kernel.context import Context, Kernel
from leadline.kernel.fiber import Fiber, State
from leadline.kernel.plugin import Plugin
from leadline.kernel.services import Service


class S0(Service, key="s0"):
    pass


class S1(Service, key="s1"):
    pass


class S2(Service, key="s2"):
    pass


class S3(Service, key="s3"):
    pass


SERVICES: tuple[type[Service], ...] = (S0, S1, S2, S3)


@dataclass(frozen=True)
class Shape:
    """One plugin: `provides` is its place among the services, or None."""

    provides: int | None
    needs: frozenset[int]
    wants: frozenset[int]
    slow: int
    fails: bool
    child: bool


@dataclass(frozen=True)
class Step:
    """Something done to the plugin at `place`, `pause` checkpoints after the step before it."""

    place: int
    action: str
    pause: int


class Run:
    """The plugins of one example, and what must never be the case while they live."""

    def __init__(self, shapes: list[Shape]) -> None:
        self.shapes = shapes
        self.running: set[int] = set()
        self.fibers: dict[int, Fiber] = {}
        self.left: dict[int, Fiber] = {}

    def plugin(self, place: int) -> Plugin[None]:
        shape = self.shapes[place]
        provides = () if shape.provides is None else (SERVICES[shape.provides],)

        async def child(ctx: Context, config: None) -> None:
            for _ in range(shape.slow):
                await anyio.lowlevel.checkpoint()

        async def apply(ctx: Context, config: None) -> None:
            assert place not in self.running, "two activations overlap"
            self.running.add(place)
            ctx.defer("running", lambda: self.running.discard(place))

            async def undo() -> None:
                for _ in range(shape.slow):
                    await anyio.lowlevel.checkpoint()
                    for need in shape.needs:
                        assert ctx.find(SERVICES[need]) is not None, "a service left before its dependent"

            ctx.defer("slow", undo)
            for need in shape.needs:
                ctx.get(SERVICES[need])
            for _ in range(shape.slow):
                await anyio.lowlevel.checkpoint()
            if provides:
                ctx.provide(provides[0], provides[0]())
            if shape.child:
                await ctx.mount(Plugin("child", child, wants=SERVICES))
            ctx.spawn(anyio.sleep_forever, name="work")
            if shape.fails:
                raise ValueError("by design")

        needs = tuple(SERVICES[it] for it in sorted(shape.needs))
        wants = tuple(SERVICES[it] for it in sorted(shape.wants))
        return Plugin(f"p{place}", apply, needs=needs, wants=wants, provides=provides)

    def expected(self) -> set[int]:
        """The places that should be active: the least fixed point over those that are mounted."""
        active: set[int] = set()
        while True:
            offered = {self.shapes[it].provides for it in active}
            more = {
                it for it in self.fibers if not self.shapes[it].fails and self.shapes[it].needs <= offered
            }
            if more == active:
                return active
            active = more

    async def do(self, kernel: Kernel, step: Step) -> None:
        place = step.place % len(self.shapes)
        fiber = self.fibers.get(place)
        if step.action == "toggle" and fiber is None:
            if place in self.left:
                await self.left[place].dispose()
            if place not in self.fibers:
                self.fibers[place] = kernel.root.attach(self.plugin(place))
        elif step.action == "toggle" and fiber is not None:
            self.left[place] = self.fibers.pop(place)
            await fiber.dispose()
        elif fiber is not None:
            await fiber.update(None)


def shapes() -> st.SearchStrategy[list[Shape]]:
    some = st.frozensets(st.integers(0, 3), max_size=2)
    shape = st.builds(
        Shape,
        provides=st.none(),
        needs=some,
        wants=some,
        slow=st.integers(0, 3),
        fails=st.sampled_from([False, False, False, True]),
        child=st.booleans(),
    )

    def with_providers(drawn: list[Shape]) -> list[Shape]:
        # The first four provide one service each, so that no two providers collide.
        return [
            Shape(n if n < 4 else None, it.needs - {n}, it.wants, it.slow, it.fails, it.child)
            for n, it in enumerate(drawn)
        ]

    return st.lists(shape, min_size=2, max_size=6).map(with_providers)


STEPS = st.lists(
    st.builds(Step, st.integers(0, 5), st.sampled_from(["toggle", "toggle", "update"]), st.integers(0, 4)),
    max_size=14,
)


@given(drawn=shapes(), steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_what_is_active_follows_from_what_is_mounted_and_nothing_is_left_behind(
    drawn: list[Shape], steps: list[Step]
) -> None:
    async def main() -> None:
        run = Run(drawn)
        async with Kernel(on_report=lambda report: None) as kernel:
            before = kernel.snapshot()
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    for place in range(len(drawn)):
                        group.start_soon(run.do, kernel, Step(place, "toggle", 0))
                    for step in steps:
                        for _ in range(step.pause):
                            await anyio.lowlevel.checkpoint()
                        group.start_soon(run.do, kernel, step)
                await kernel.settled()
                active = {place for place, fiber in run.fibers.items() if fiber.state is State.ACTIVE}
                assert active == run.expected() == run.running
                for fiber in tuple(run.fibers.values()):
                    await fiber.dispose()
            assert kernel.snapshot() == before
            told = [it.error for it in kernel.reports]
            assert not [it for it in told if not (isinstance(it, ValueError) and str(it) == "by design")]

    anyio.run(main)
