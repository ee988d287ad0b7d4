"""Prints how near the estimate of tokens is: `python -m evals.tokens`. The counts are made anew by `count.mjs`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median

from leadline.core.llm.tokens import text_tokens

HERE = Path(__file__).parent
OLDER = frozenset({"cl100k_base"})
"""Counted, but not aimed at: tokenisers that current models do not use."""


def counts() -> dict[str, dict[str, int]]:
    """Tokens of each sample by tokeniser."""
    return json.loads((HERE / "counts.json").read_text(encoding="utf-8"))


def sample(name: str) -> str:
    """The text of a sample."""
    return (HERE / "samples" / f"{name}.txt").read_text(encoding="utf-8")


def middle(of: dict[str, int]) -> float:
    """What most tokenisers come near to."""
    return median(tokens for name, tokens in of.items() if name not in OLDER)


def main() -> None:
    """Print the table."""
    lines = [
        "| Text | Bytes | Tokens, median | Estimate | Error | Least | Most |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, of in counts().items():
        text = sample(name)
        aimed, said = middle(of), text_tokens(text)
        lines.append(
            f"| {name.replace('_', ' ')} | {len(text.encode()):,} | {aimed:,.0f} | {said:,} | {said / aimed - 1:+.0%} "
            f"| {min(of.values()):,} | {max(of.values()):,} |"
        )
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
