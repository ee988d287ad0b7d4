"""Every refusal is one of two families, with words for a person."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.capabilities.models.providers.failures import http_failure
from leadline.capabilities.models.providers.profiles import build_profile, shipped_profiles
from leadline.core.llm.failure import LlmFailure, Stop, Wait

DEEPSEEK = build_profile("deepseek", shipped_profiles())
JSON = {"content-type": "application/json"}


def failure(
    status: int, body: bytes = b"", headers: Mapping[str, str] = JSON, now: float = 0.0
) -> LlmFailure:
    return http_failure(DEEPSEEK, status, headers, body, now)


@pytest.mark.parametrize(
    ("status", "body", "family", "code"),
    [
        (400, b'{"error":{"message":"bad value"}}', Stop, "INVALID_REQUEST"),
        (401, b'{"error":{"message":"no"}}', Stop, "AUTH"),
        (402, b'{"error":{"message":"Insufficient Balance"}}', Stop, "QUOTA"),
        (403, b"", Stop, "AUTH"),
        (404, b'{"error":{"message":"model not found"}}', Stop, "NOT_FOUND"),
        (408, b"", Wait, "TIMEOUT"),
        (409, b"", Wait, "SERVER"),
        (413, b'{"error":"request too large"}', Stop, "CONTEXT_WINDOW_EXCEEDED"),
        (422, b'{"detail":"wrong type"}', Stop, "INVALID_REQUEST"),
        (429, b'{"error":{"message":"slow down"}}', Wait, "RATE_LIMIT"),
        (429, b'{"error":{"message":"x","code":"insufficient_quota"}}', Stop, "QUOTA"),
        (500, b"", Wait, "SERVER"),
        (502, b"Bad Gateway", Wait, "SERVER"),
        (503, b"", Wait, "OVERLOADED"),
        (302, b"", Stop, "HTTP"),
        (400, b'{"error":{"message":"m","code":"context_length_exceeded"}}', Stop, "CONTEXT_WINDOW_EXCEEDED"),
        (
            500,
            b'{"error":{"message":"the request exceeds the available context size"}}',
            Stop,
            "CONTEXT_WINDOW_EXCEEDED",
        ),
    ],
)
def test_statuses_and_bodies_fall_into_their_family(
    status: int, body: bytes, family: type, code: str
) -> None:
    found = failure(status, body)
    assert isinstance(found, family)
    assert (found.code, found.status) == (code, status)


def test_an_auth_failure_names_the_variable_to_check() -> None:
    assert "DEEPSEEK_API_KEY" in str(failure(401))


@pytest.mark.case("M51")
def test_a_gateways_web_page_becomes_its_title_and_is_waited_for() -> None:
    page = b"<html><head><title>504 Gateway Time-out</title></head><body>" + b"<hr>" * 4000
    assert failure(504, page, {"content-type": "text/html"}) == Wait(
        "SERVER", "504 Gateway Time-out", status=504
    )


def test_an_empty_or_endless_body_still_makes_a_message() -> None:
    assert failure(500).message == "HTTP 500 with an empty body."
    assert len(failure(500, b"x" * 9000).message) < 600


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "30"}, b"", 30.0),
        ({"retry-after-ms": "1500"}, b"", 1.5),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:37 GMT"}, b"", 37.0),
        ({"retry-after": "Sun, 06 Nov 1984 08:49:37 GMT"}, b"", 0.0),
        ({"retry-after": "soon"}, b"", None),
        ({"retry-after": "-5"}, b"", None),
        ({"retry-after": "nan"}, b"", None),
        ({}, b"Please try again in 11m30s.", 690.0),
        ({}, b"Please try again in 1.5s.", 1.5),
        ({}, b"try again in a while", None),
        ({}, b"", None),
    ],
)
def test_the_time_to_wait_is_read_from_headers_and_words(
    headers: Mapping[str, str], body: bytes, seconds: float | None
) -> None:
    found = failure(429, body, headers, now=784111740.0)
    assert isinstance(found, Wait)
    assert found.retry_after_s == seconds


@given(st.integers(300, 599), st.binary(max_size=80), st.sampled_from(["application/json", "text/html", ""]))
def test_no_response_makes_it_crash(status: int, body: bytes, content_type: str) -> None:
    found = failure(status, body, {"content-type": content_type, "retry-after": "x"})
    assert found.message
