"""What each role must return: JSON Schemas for `structured_output`, and the types behind them."""

from __future__ import annotations

import msgspec

from leadline.core.llm.jsonvalue import JsonObject

MAX_LABEL = 200
MAX_TEXT = 20_000

_LEAF: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text", "evidence", "label"],
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "One sentence."},
        "evidence": {
            "type": "array",
            "items": {"type": "string", "maxLength": 40},
            "description": "Ids of the evidence that carries the sentence, such as u1.e2.",
        },
        "label": {"type": "string", "enum": ["finding", "analysis", "recommendation", "background"]},
    },
}
_LEAVES: JsonObject = {"type": "array", "items": _LEAF, "minItems": 1}

_BLOCK: JsonObject = {
    "oneOf": [
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["kind", "sentences"],
            "properties": {"kind": {"const": "paragraph"}, "sentences": _LEAVES},
        },
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["kind", "items"],
            "properties": {
                "kind": {"const": "list"},
                "items": {"type": "array", "items": _LEAVES, "minItems": 1},
            },
        },
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["kind", "header", "rows"],
            "properties": {
                "kind": {"const": "table"},
                "header": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "rows": {"type": "array", "items": {"type": "array", "items": _LEAF}, "minItems": 1},
            },
        },
    ]
}

PLAN_SCHEMA: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["brief", "units"],
    "properties": {
        "brief": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
        "units": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["title", "question", "objective"],
                "properties": {
                    "title": {"type": "string", "minLength": 1, "maxLength": MAX_LABEL},
                    "question": {"type": "string", "minLength": 1, "maxLength": 4000},
                    "objective": {"type": "string", "minLength": 1, "maxLength": 4000},
                },
            },
        },
    },
}

FINDING_SCHEMA: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["findings", "unresolved"],
    "properties": {
        "findings": {"type": "string", "maxLength": MAX_TEXT},
        "unresolved": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 2000}},
        "limitations": {"type": "string", "maxLength": MAX_TEXT},
    },
}

REPORT_SCHEMA: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["title", "sections"],
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 300},
        "sections": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["heading", "blocks"],
                "properties": {
                    "heading": {"type": "string", "minLength": 1, "maxLength": 300},
                    "blocks": {"type": "array", "items": _BLOCK, "minItems": 1},
                },
            },
        },
        "unresolved": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 2000}},
    },
}


class PlannedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A unit as the planner returned it."""

    title: str
    question: str
    objective: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The planner's answer."""

    brief: str
    units: tuple[PlannedUnit, ...]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A researcher's answer; its evidence is in the ledger, not here."""

    findings: str
    unresolved: tuple[str, ...] = ()
    limitations: str | None = None
