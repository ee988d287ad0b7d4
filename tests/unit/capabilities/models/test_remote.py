"""Which addresses are far away."""

from __future__ import annotations

import pytest

from leadline.capabilities.models.providers.http import is_remote


@pytest.mark.parametrize(
    ("url", "far"),
    [
        ("http://127.0.0.1:8080/v1", False),
        ("http://[::1]:8080/v1", False),
        ("http://localhost:11434/v1", False),
        ("http://vllm:8000/v1", False),
        ("http://gpu-box.local:8000/v1", False),
        ("http://192.168.1.7:8000/v1", False),
        ("http://10.0.0.4/v1", False),
        ("http://[fd00::1]/v1", False),
        ("https://gateway.example.com/v1", True),
        ("https://llm.corp.internal/v1", True),
        ("http://8.8.8.8/v1", True),
        ("http://[2001:4860:4860::8888]/v1", True),
    ],
)
def test_an_address_tells_whether_it_is_of_ones_own_network(url: str, far: bool) -> None:
    assert is_remote(url) is far
