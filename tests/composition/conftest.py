"""Whole compositions in tests: a home of their own, a small corpus, a provider whose model does research."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import Received
from tests.composition.cli import Command, Ended

HOTEL = "Hotel caps: EUR 180 (EU), USD 240 (US) per night."


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    monkeypatch.setenv("LEADLINE_HOME", str(path))
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    (folder / "finance").mkdir(parents=True)
    (folder / "finance" / "expenses.md").write_text(
        f"# Expense Policy (2026)\n\n- {HOTEL}\n- Flights: economy.\n"
    )
    (folder / "leave.md").write_text("# Annual Leave\n\nEmployees in the EU have 28 days of leave.\n")
    return folder


def schema_of(request: Received) -> Mapping[str, Any]:
    tools: Any = request.body.get("tools") or []
    for tool in tools:
        if tool["function"]["name"] == "structured_output":
            return tool["function"]["parameters"]["properties"]
    return {}


@dataclass
class FakeResearcher:
    """A model that plans one unit, searches, reads, quotes and writes; each part can be replaced."""

    query: str = "hotel caps"
    quote: str = HOTEL
    sentence: str = HOTEL
    units: int = 1
    plan: Callable[[Received], Behaviour] | None = None
    unit: Callable[[Received], Behaviour] | None = None
    writer: Callable[[Received], Behaviour] | None = None
    seen: list[str] = field(default_factory=list)

    def __call__(self, request: Received) -> Behaviour:
        properties = schema_of(request)
        if "units" in properties:
            self.seen.append("plan")
            return self.plan(request) if self.plan else self.planned()
        if "sections" in properties:
            self.seen.append("write")
            return self.writer(request) if self.writer else self.written()
        self.seen.append("unit")
        return self.unit(request) if self.unit else self.researched(request)

    def planned(self) -> Behaviour:
        unit = [{"title": f"t{n}", "question": f"question {n}?", "objective": "o"} for n in range(self.units)]
        return call("structured_output", {"brief": "b", "units": unit})

    def researched(self, request: Received) -> Behaviour:
        answered = [message for message in request.messages if message["role"] == "tool"]
        sources = re.findall(r"d-[0-9a-f]{10}", str(answered[0]["content"]) if answered else "")
        if not answered:
            return call("corpus_search", {"query": self.query})
        if len(answered) == 1 and sources:
            return call("read", {"source": sources[0]})
        if len(answered) == 2 and sources:
            return call(
                "record_evidence", {"source": sources[0], "quote": self.quote, "claim": "There is a cap."}
            )
        return call("structured_output", {"findings": "found", "unresolved": []})

    def written(self) -> Behaviour:
        leaf = {"text": self.sentence, "evidence": ["u1.e1"], "label": "finding"}
        block = {"kind": "paragraph", "sentences": [leaf]}
        section = {"heading": "Answer", "blocks": [block]}
        return call("structured_output", {"title": "Hotel caps", "sections": [section]})


def call(name: str, arguments: Mapping[str, object]) -> Behaviour:
    return Behaviour("tool_call_success", calls=(CallSpec(name, arguments),))


@pytest.fixture
def researcher() -> FakeResearcher:
    return FakeResearcher()


@pytest.fixture
def command(home: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Runs a command of the program in this process, on a home of its own."""
    from leadline.apps.cli.main import exit_code

    def call(*arguments: str | Path) -> Ended:
        capfdbinary.readouterr()
        code = exit_code([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return Ended(code, out, err.decode())

    return call
