"""How a row's plugin is found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.kernel.errors import ConfigError
from leadline.kernel.loader.discover import Source, check_requirement, discover, import_plugin, installed

PLUGIN = """\
from leadline.kernel.plugin import Plugin

async def apply(ctx, config): ...

plugin = Plugin({name!r}, apply)
number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.case("G02")
def test_of_two_plugins_with_one_name_the_earlier_source_is_used_and_both_origins_are_told(
    folder: Path,
) -> None:
    (folder / "found_in_project.py").write_text(PLUGIN.format(name="project"))
    (folder / "found_in_user.py").write_text(PLUGIN.format(name="user"))
    catalogue = discover(
        [
            Source("project folder", {"search": "found_in_project:plugin"}),
            Source("user folder", {"search": "found_in_user:plugin", "extra": "found_in_user:plugin"}),
        ]
    )
    assert catalogue.resolve("search").name == "project"
    assert catalogue.resolve("extra").name == "user"
    assert catalogue.report() == ["plugin 'search': project folder is used, user folder is not"]
    with pytest.raises(ConfigError, match="no plugin is called 'serch'; did you mean 'search'"):
        catalogue.resolve("serch")


def test_installed_distributions_are_listed_in_order_of_name_without_importing_anything(folder: Path) -> None:
    for name in ("beta", "alpha"):
        info = folder / f"{name}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text("[leadline.plugins]\nsearch = not_there:plugin\n")
    sources = [it for it in installed() if it.label in ("alpha 1.2", "beta 1.2")]
    assert sources == [
        Source("alpha 1.2", {"search": "not_there:plugin"}),
        Source("beta 1.2", {"search": "not_there:plugin"}),
    ]
    assert discover(sources).report() == ["plugin 'search': alpha 1.2 is used, beta 1.2 is not"]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("found_good", "write import.path:name"),
        ("no_such_module:plugin", "cannot import no_such_module: ModuleNotFoundError"),
        ("found_broken:plugin", "cannot import found_broken: SyntaxError"),
        ("found_good:plugn", "has no 'plugn'; did you mean 'plugin'"),
        ("found_good:number", "is a int, not a Plugin"),
    ],
)
def test_a_target_that_is_no_plugin_is_told_with_the_reason(folder: Path, target: str, message: str) -> None:
    (folder / "found_good.py").write_text(PLUGIN.format(name="good"))
    (folder / "found_broken.py").write_text("def :")
    with pytest.raises(ConfigError, match=message):
        import_plugin(target)


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ("demo", True),
        ("demo==1.4", True),
        ("demo==1.4.0", True),
        ("demo>=1.4,<2", True),
        ("demo>=1.10", False),
        ("demo<1.4", False),
        ("demo!=1.4", False),
        ("demo>1.4", False),
        ("demo<=1.4", True),
        ("demo>=1.5rc1", False),
        ("demo>1.4rc1", True),
    ],
)
def test_versions_are_compared_by_number(folder: Path, wanted: str, fits: bool) -> None:
    info = folder / "demo-1.4.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.4.0\n")
    if fits:
        check_requirement(wanted)
    else:
        with pytest.raises(ConfigError, match=f"requires {wanted}, present is demo 1.4.0"):
            check_requirement(wanted)


def test_a_requirement_that_cannot_be_met_or_read_says_so() -> None:
    with pytest.raises(ConfigError, match="requires no-such-thing>=1, but no-such-thing is not installed"):
        check_requirement("no-such-thing>=1")
    with pytest.raises(ConfigError, match=r"cannot read the requirement 'anyio~1'"):
        check_requirement("anyio~1")
    with pytest.raises(ConfigError, match="'x' is no version"):
        check_requirement("anyio>=x")
