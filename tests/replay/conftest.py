"""Runs that are made once against a provider that is then switched off, and replayed."""

from __future__ import annotations

from tests.composition.conftest import corpus, home, researcher

__all__ = ["corpus", "home", "researcher"]
