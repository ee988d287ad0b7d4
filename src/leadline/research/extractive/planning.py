"""The planner's part: a question becomes one unit, or one for each of its facets."""

from __future__ import annotations

from leadline.core.llm.jsonvalue import JsonValue
from leadline.research.extractive.facets import split
from leadline.research.extractive.phrases import phrase, report_language
from leadline.research.roles.purposes import PlanningData
from leadline.research.roles.schemas import MAX_LABEL


def plan(data: PlanningData) -> JsonValue:
    """A plan for `structured_output`. Facets beyond the number of units share the last ones; none is dropped."""
    language = report_language(data.language, data.question)
    most = 1 if data.breadth == "focused" else max(1, data.max_units)
    groups = _grouped(split(data.question), most)
    return {
        "brief": phrase("brief", language, question=" ".join(data.question.split())),
        "units": [
            {
                "title": title(" ".join(group)),
                "question": "\n".join(group),
                "objective": phrase("objective", language),
            }
            for group in groups
        ],
    }


def _grouped(facets: list[str], most: int) -> list[list[str]]:
    """The facets in order, in at most `most` groups of about the same size."""
    count = min(most, len(facets))
    size, larger = divmod(len(facets), count)
    groups: list[list[str]] = []
    at = 0
    for number in range(count):
        end = at + size + (number < larger)
        groups.append(facets[at:end])
        at = end
    return groups


def title(question: str) -> str:
    """A question as a heading: on one line and not too long."""
    flat = " ".join(question.split()).rstrip(" 。.")
    flat = flat[:1].upper() + flat[1:]
    return flat if len(flat) <= MAX_LABEL else flat[: MAX_LABEL - 1].rstrip() + "…"
