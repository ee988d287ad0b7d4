"""The leaves of a report: the sentences, items and cells that can be cited, in reading order."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.research.events import Block, ItemList, Leaf, Paragraph, Report, Table


def leaves(report: Report) -> Sequence[tuple[str, Leaf]]:
    """Every leaf of a report in reading order, with the heading of its section."""
    found: list[tuple[str, Leaf]] = []
    for section in report.sections:
        for block in section.blocks:
            found.extend((section.heading, leaf) for group in _groups(block) for leaf in group)
    return found


def _groups(block: Block) -> tuple[tuple[Leaf, ...], ...]:
    match block:
        case Paragraph():
            return (block.sentences,)
        case ItemList():
            return block.items
        case Table():
            return block.rows
