"""The program as a person runs it, over a home of the test's own."""

from __future__ import annotations

from tests.composition.conftest import command, home

__all__ = ["command", "home"]
