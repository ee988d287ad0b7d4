"""Five hundred agents at once: the wall time, CPU and memory of each, beside the calls alone.

On a machine with other work the wall time says little: the provider, the agents and the other work share its cores.
So the floor is measured in turn with it, and the CPU time of a round stands beside.
"""

from __future__ import annotations

import statistics

from bench.many_agents import LATENCY_S, ROUNDS, in_own_process

AGENTS, RUNS = 500, 4
IDEAL_S = ROUNDS * LATENCY_S * 1.1
"""The latency of the calls that stand one behind the other, and a tenth for all else."""


def measure() -> list[dict[str, object]]:
    """The rows of this bar."""
    count = str(AGENTS)
    own, bare = list[list[float]](), list[list[float]]()
    for _ in range(RUNS):
        bare.append(in_own_process(count, "bare"))
        own.append(in_own_process(count, "written"))
    synced = in_own_process(count, "synced")
    floor, wall = min(run[0] for run in bare), min(run[0] for run in own)
    memory, bare_memory = (statistics.median(run[1] for run in runs) for runs in (own, bare))
    cpu, bare_cpu = (min(run[2] for run in runs) * 1000 for runs in (own, bare))
    bar = f"{AGENTS} agents x {ROUNDS} rounds at {LATENCY_S * 1000:g} ms"
    return [
        _row(f"{bar}, the calls alone, over the ideal", floor, "s", IDEAL_S),
        _row(f"{bar}, written, over the ideal", wall, "s", IDEAL_S),
        _row(f"{bar}, written, over the calls alone", wall, "s", floor),
        _row(f"{bar}, synced, over the calls alone", synced[0], "s", floor),
        _row("CPU of one round of one of them, over that of a call alone", cpu, "ms", bare_cpu),
        _row("memory of one of them, over that of a task with its connection", memory, "kB", bare_memory),
    ]


def _row(bar: str, value: float, unit: str, floor: float) -> dict[str, object]:
    return {"bar": bar, "value": value, "unit": unit, "floor": floor, "ratio": value / floor}


if __name__ == "__main__":
    for row in measure():
        print(row)
