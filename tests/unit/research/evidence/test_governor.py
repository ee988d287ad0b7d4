"""Source calls of a unit are counted where they are made."""

from __future__ import annotations

from leadline.research.evidence.governor import SourceGovernor


def _searched(governor: SourceGovernor, *sources: str) -> None:
    governor.observe("corpus_search", {"hits": [{"source": source} for source in sources]})


def _read(governor: SourceGovernor, source: str, outcome: str) -> None:
    governor.observe("read", {"source": source, "outcome": outcome})


def test_calls_beyond_the_limit_are_refused_with_what_to_do() -> None:
    governor = SourceGovernor(2, 1)
    assert governor.refusal("corpus_search", {"query": "a"}) is None
    assert governor.refusal("corpus_search", {"query": "b"}) is None
    refused = governor.refusal("corpus_search", {"query": "c"})
    assert refused is not None
    assert "2 source calls" in refused


def test_the_same_call_again_is_refused_and_costs_nothing() -> None:
    governor = SourceGovernor(2, 0)
    assert governor.refusal("read", {"source": "d-1", "start": 0}) is None
    assert governor.refusal("read", {"start": 0, "source": "d-1"}) is not None
    assert governor.refusal("read", {"source": "d-2", "start": 0}) is None


def test_other_tools_are_not_counted() -> None:
    governor = SourceGovernor(1, 0)
    for _ in range(5):
        assert governor.refusal("record_evidence", {"source": "d-1"}) is None


def test_one_recovery_read_is_open_after_a_failed_read_of_something_else_that_was_found() -> None:
    governor = SourceGovernor(2, 1)
    assert governor.refusal("corpus_search", {"query": "a"}) is None
    _searched(governor, "d-1", "d-2", "d-3")
    assert governor.refusal("read", {"source": "d-1"}) is None
    _read(governor, "d-1", "error")
    assert governor.refusal("read", {"source": "d-2"}) is None
    _read(governor, "d-2", "ok")
    assert governor.refusal("read", {"source": "d-3"}) is not None


def test_there_is_no_recovery_read_when_every_read_succeeded() -> None:
    governor = SourceGovernor(2, 1)
    assert governor.refusal("corpus_search", {"query": "a"}) is None
    _searched(governor, "d-1", "d-2")
    assert governor.refusal("read", {"source": "d-1"}) is None
    _read(governor, "d-1", "ok")
    assert governor.refusal("read", {"source": "d-2"}) is not None


def test_a_recovery_read_must_have_been_found_and_not_read() -> None:
    governor = SourceGovernor(2, 1)
    assert governor.refusal("corpus_search", {"query": "a"}) is None
    _searched(governor, "d-1", "d-2")
    assert governor.refusal("read", {"source": "d-1", "start": 0}) is None
    _read(governor, "d-1", "error")
    assert governor.refusal("read", {"source": "d-9"}) is not None
    assert governor.refusal("read", {"source": "d-1", "start": 5}) is not None
    assert governor.refusal("corpus_search", {"query": "b"}) is not None
