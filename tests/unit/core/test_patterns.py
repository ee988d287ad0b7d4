"""Patterns that are compiled at their first use."""

from __future__ import annotations

import importlib
import pkgutil
import re
from types import ModuleType

import pytest

from leadline import core, research
from leadline.core.patterns import Pattern, compile_patterns, lazy_pattern


def _modules() -> list[ModuleType]:
    names = [
        one.name
        for package in (core, research)
        for one in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return [importlib.import_module(name) for name in names]


def test_every_pattern_of_the_core_and_of_research_compiles() -> None:
    counted = {module.__name__: compile_patterns(module) for module in _modules()}
    assert counted["leadline.research.verify.figures"] > 10
    assert sum(counted.values()) > 100


def test_it_is_used_like_a_compiled_pattern() -> None:
    words = lazy_pattern(r"(\w+) (?P<last>\w+)", re.IGNORECASE)
    found = words.fullmatch("Two words")
    assert found is not None
    assert found["last"] == "words"
    assert words.sub(r"\2 \1", "two words") == "words two"
    assert words.search("x two words", 2) is not None
    assert words.pattern == r"(\w+) (?P<last>\w+)"
    assert words.flags & re.IGNORECASE


def test_making_one_compiles_nothing() -> None:
    broken = lazy_pattern("(")
    with pytest.raises(re.error):
        broken.search("")


def test_from_the_second_use_on_it_is_the_method_of_the_compiled_pattern() -> None:
    digits = lazy_pattern(r"\d")
    assert digits.search("7")
    assert vars(digits)["search"].__self__ is re.compile(r"\d")


def test_patterns_in_tuples_are_compiled_too() -> None:
    module = ModuleType("made")
    module.__dict__.update(
        ONE=lazy_pattern("a"), MORE=((1, lazy_pattern("b")), lazy_pattern("c")), OTHER=re.compile("d")
    )
    assert compile_patterns(module) == 3
    assert not hasattr(Pattern("a", 0), "_missing")
