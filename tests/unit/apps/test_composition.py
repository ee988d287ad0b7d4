"""Profiles, the layer of the home, patches and options, in that order."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.apps.sdk.composition import PROFILES, Options, composed
from leadline.kernel.errors import ConfigError


def ids(options: Options) -> list[str]:
    return [row.id for row in composed(options).rows]


def values(options: Options) -> dict[str, str]:
    return {line.path: line.value for line in composed(options).describe()}


def test_profiles_grow_from_base_to_research(tmp_path: Path) -> None:
    base, headless, research = (ids(Options(profile=name, home=tmp_path)) for name in PROFILES)
    assert headless[: len(base)] == base
    assert research[: len(headless)] == headless


def test_the_home_layer_changes_what_a_profile_has_and_may_speak_of_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "leadline.yml").write_text(
        "- {id: models, merge: {default: local/mine}}\n- {id: research, merge: {source_calls: 6}}\n"
    )
    assert values(Options(profile="research", home=tmp_path))["research.config.source_calls"] == "6"
    headless = values(Options(profile="headless", home=tmp_path))
    assert headless["models.config.default"] == "local/mine"
    assert "research" not in headless
    assert "models" not in values(Options(profile="base", home=tmp_path))


def test_rows_of_ones_own_are_in_every_profile(tmp_path: Path) -> None:
    (tmp_path / "leadline.yml").write_text("- {id: mine, plugin: 'some.where:plugin'}\n")
    for name in PROFILES:
        assert "mine" in ids(Options(profile=name, home=tmp_path))


def test_an_id_that_nothing_has_is_an_error_in_every_layer(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("- {id: modls, disabled: true}\n")
    with pytest.raises(ConfigError, match=r"wrong.yml:1.*did you mean 'models'"):
        composed(Options(home=tmp_path, patches=[wrong]))
    (tmp_path / "leadline.yml").write_text(wrong.read_text())
    for name in PROFILES:
        with pytest.raises(ConfigError, match=r"leadline.yml:1"):
            composed(Options(profile=name, home=tmp_path))


def test_a_patch_may_only_speak_of_what_the_profile_has(tmp_path: Path) -> None:
    (tmp_path / "leadline.yml").write_text("[]\n")
    patch = tmp_path / "patch.yml"
    patch.write_text("- {id: research, merge: {source_calls: 6}}\n")
    with pytest.raises(ConfigError, match="no row has the id 'research'"):
        composed(Options(profile="headless", home=tmp_path, patches=[patch]))


def test_options_come_last(tmp_path: Path) -> None:
    (tmp_path / "leadline.yml").write_text("- {id: models, merge: {default: local/mine}}\n")
    chosen = values(
        Options(home=tmp_path, model="local/other", base_url="http://127.0.0.1:1", corpus=[tmp_path])
    )
    assert chosen["models.config.default"] == "local/other"
    assert chosen["models.config.providers.local.base_url"] == "http://127.0.0.1:1"
    assert chosen["deep_research.config.corpus[0]"] == str(tmp_path)
    assert chosen["home.config.path"] == str(tmp_path)


def test_a_profile_in_a_file_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "none"))
    own = tmp_path / "own.yml"
    own.write_text("- {id: clock, plugin: 'leadline.core.clock:plugin'}\n")
    assert values(Options(profile=own)) == {"clock": "leadline.core.clock:plugin"}
