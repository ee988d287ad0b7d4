"""`python -m evals`: answers the questions and prints how many answers are right. Exit 1 below the bar."""

from __future__ import annotations

import sys

import anyio

from .extraction import Scored, folders, score_folder, table

BAR = 0.9
"""Share of right answers in every folder that is expected at least."""


async def run() -> dict[str, list[Scored]]:
    """Every folder at hand."""
    return {name: await score_folder(folder, cases) for name, (folder, cases) in folders().items()}


def main() -> int:
    scores = anyio.run(run)
    print("\n".join(table(scores)))
    for name, scored in scores.items():
        for one in scored:
            if one.fault:
                print(f"- {name} [{one.case.kind}] {one.case.question}: {one.fault}")
    if "company-share" not in scores:
        print("company-share is left out: LEADLINE_DATA does not name a folder that has it")
    low = [
        name for name, scored in scores.items() if sum(not one.fault for one in scored) < BAR * len(scored)
    ]
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
