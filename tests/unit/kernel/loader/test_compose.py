"""How layers become one composition, and what they may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.kernel.errors import ConfigError
from leadline.kernel.loader.compose import Composition, Layer, compose
from leadline.kernel.loader.interpolate import plain
from leadline.kernel.loader.patch import all_rows

BASE = """\
- id: clock
  plugin: leadline.core.clock:plugin
- id: models
  plugin: leadline.capabilities.models.plugin:plugin
  config:
    default: openai/small
    routes:
      openai: {base: "https://api.example", key: !env OPENAI_KEY}
      local: {base: "http://127.0.0.1:8080"}
    order: [openai, local]
- id: research
  rows:
    - id: engine
      plugin: leadline.research.plugin:plugin
"""


def composed(*patches: str) -> Composition:
    return compose(
        [Layer("base.yml", BASE), *(Layer(f"patch{n}.yml", text) for n, text in enumerate(patches))]
    )


def config(composition: Composition, row_id: str) -> object:
    row = next(it for it in all_rows(composition.rows) if it.id == row_id)
    return plain(row.config, {"OPENAI_KEY": "secret"}, lambda ref: ref)


def ids(composition: Composition) -> list[str]:
    return [row.id for row in composition.enabled()]


def test_rows_come_out_in_order_with_their_values_and_origins() -> None:
    composition = composed()
    assert ids(composition) == ["clock", "models", "research", "engine"]
    assert config(composition, "models") == {
        "default": "openai/small",
        "routes": {
            "openai": {"base": "https://api.example", "key": "secret"},
            "local": {"base": "http://127.0.0.1:8080"},
        },
        "order": ["openai", "local"],
    }
    assert str(composition.rows[1].origin) == "base.yml:3"


def test_merge_changes_the_named_keys_and_lists_are_replaced() -> None:
    composition = composed(
        "- {id: models, merge: {default: local/x, routes: {local: {base: other}}, order: [local]}}"
    )
    assert config(composition, "models") == {
        "default": "local/x",
        "routes": {"openai": {"base": "https://api.example", "key": "secret"}, "local": {"base": "other"}},
        "order": ["local"],
    }


def test_config_replaces_the_whole_config() -> None:
    assert config(composed("- {id: models, config: {default: local/x}}"), "models") == {"default": "local/x"}


def test_a_later_layer_wins_over_an_earlier_one() -> None:
    composition = composed("- {id: models, merge: {default: a}}", "- {id: models, merge: {default: b}}")
    assert config(composition, "models")["default"] == "b"  # type: ignore[index]


def test_a_row_can_be_disabled_and_a_disabled_group_disables_what_is_in_it() -> None:
    assert ids(composed("- {id: clock, disabled: true}")) == ["models", "research", "engine"]
    assert ids(composed("- {id: research, disabled: true}")) == ["clock", "models"]
    assert ids(composed("- {id: clock, disabled: true}", "- {id: clock, disabled: false}"))[0] == "clock"


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("- insert: {id: new, plugin: a:b}", ["clock", "models", "research", "engine", "new"]),
        (
            "- {insert: {id: new, plugin: a:b}, before: clock}",
            ["new", "clock", "models", "research", "engine"],
        ),
        (
            "- {insert: {id: new, plugin: a:b}, after: clock}",
            ["clock", "new", "models", "research", "engine"],
        ),
        (
            "- {insert: {id: new, plugin: a:b}, into: research}",
            ["clock", "models", "research", "engine", "new"],
        ),
        (
            "- {insert: {id: new, plugin: a:b}, before: engine}",
            ["clock", "models", "research", "new", "engine"],
        ),
        ("- {id: new, plugin: a:b}", ["clock", "models", "research", "engine", "new"]),
    ],
)
def test_a_row_is_inserted_where_the_patch_says(patch: str, expected: list[str]) -> None:
    assert ids(composed(patch)) == expected


def test_an_inserted_row_can_be_patched_by_a_later_layer() -> None:
    composition = composed("- {insert: {id: new, plugin: a:b}, into: research}", "- {id: new, merge: {x: 1}}")
    assert config(composition, "new") == {"x": 1}


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("\n- {id: modles, merge: {}}", r"patch0.yml:2: no row has the id 'modles'; did you mean 'models'\?"),
        (
            "- {insert: {id: n, plugin: a:b}, into: resarch}",
            r"patch0.yml:1: no row has the id 'resarch'; did you",
        ),
        ("- {insert: {id: n, plugin: a:b}, into: clock}", "'clock' is no group"),
        ("- {insert: {id: n, plugin: a:b}, into: research, after: clock}", "one place, not after and into"),
        (
            "- {insert: {id: n, plugin: a:b}, befor: clock}",
            r"unknown key 'befor' in an insertion; did you mean 'before'",
        ),
        (
            "- {id: models,\n   mrge: {}}",
            r"patch0.yml:2: unknown key 'mrge' in a patch; did you mean 'merge'",
        ),
        ("- {id: new, plugin: a:b, confg: {}}", r"unknown key 'confg' in a row; did you mean 'config'"),
        ("- {id: clock, plugin: a:b}", r"patch0.yml:1: the id 'clock' is taken by the row at base.yml:1"),
        (
            "- {id: g, rows: [{id: engine, plugin: a:b}]}",
            r"the id 'engine' is taken by the row at base.yml:13",
        ),
        ("- {id: g, rows: [{id: x, plugin: a:b}, {id: x, plugin: a:b}]}", "the id 'x' is taken"),
        ("- {id: new}", "no row has the id 'new'"),
        ("- {id: new, plugin: a:b, rows: []}", "either `plugin` or `rows`"),
        ("- {id: g, rows: [], config: {x: 1}}", "a group has no config"),
        ("- {id: research, merge: {x: 1}}", "is a group and has no config"),
        ("- {id: models, config: {}, merge: {}}", "not both"),
        ("- {id: models, config: 3}", "config must be a mapping"),
        ("- {id: models, disabled: maybe}", "`disabled` must be true or false"),
        ("- {id: models, disabled: !env OFF}", "`disabled` must be true or false"),
        ("- {id: models, isolate: {clock: [1]}}", "isolate.clock is true"),
        ("- {id: '', plugin: a:b}", "`id` must be there"),
        ("- {plugin: a:b}", "`id` must be there"),
        ("- just text", "an item must be a mapping"),
        ("rows: []", "a layer must be a list"),
        ("- {id: a, id: b}", r"patch0.yml:1: the key 'id' is there twice"),
        ("- {1: a}", "the key '1' is not a string"),
        ("- {<<: {id: a}}", "the key '<<' is not a string"),
        ("\n\n- [", r"patch0.yml:\d: not valid YAML"),
        ("- !!python/object:os.system {}", r"unknown tag '.*os.system'; only !env and !ref"),
        ("- !js x", "unknown tag '!js'"),
        ("- &a [*a]", "does an alias repeat itself"),
        ("- {id: models, config: {key: !env }}", "write !env NAME or"),
        ("- {id: models, config: {key: !env {nam: X}}}", "write !env NAME or"),
        ("- {id: models, config: {key: !ref home}}", r"write !ref service.field or"),
    ],
)
def test_what_cannot_be_used_is_an_error_with_file_line_and_the_nearest_name(
    patch: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        composed(patch)


def test_aliases_that_blow_up_are_refused() -> None:
    lines = ["- &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(ConfigError, match="too deep or too large"):
        composed("\n".join(lines))


def test_scalars_keep_their_plain_types_and_dates_stay_text() -> None:
    composition = composed(
        "- {id: models, config: {a: 1, b: 1.5, c: true, d: null, e: 2024-01-02, f: 'yes'}}"
    )
    assert config(composition, "models") == {
        "a": 1,
        "b": 1.5,
        "c": True,
        "d": None,
        "e": "2024-01-02",
        "f": "yes",
    }


def test_the_environment_is_read_with_its_default_and_a_missing_one_is_told_by_name_and_place() -> None:
    composition = composed(
        "- {id: models, config: {a: !env {name: NOT_SET, default: 7}, b: !env OPENAI_KEY}}"
    )
    assert config(composition, "models") == {"a": 7, "b": "secret"}
    with pytest.raises(
        ConfigError, match=r"patch0.yml:1: the environment variable NOT_SET is not set; set it, or"
    ):
        config(composed("- {id: models, config: {a: !env NOT_SET}}"), "models")


def test_describe_gives_each_value_its_origin_and_shows_no_secret() -> None:
    composition = composed(
        "- {id: models, merge: {default: local/x, spare: !env {name: SPARE, default: 1}, dir: !ref home.path}}",
        "- {id: engine, disabled: true, isolate: {store: true}}",
    )
    lines = {it.path: (it.value, it.origin) for it in composition.describe({"OPENAI_KEY": "very secret"})}
    assert lines["models"] == ("leadline.capabilities.models.plugin:plugin", "base.yml:3")
    assert lines["models.config.default"] == ("local/x", "patch0.yml:1")
    assert lines["models.config.routes.openai.key"] == ("!env OPENAI_KEY (set)", "base.yml:8")
    assert lines["models.config.spare"] == ("!env SPARE (not set, default 1)", "patch0.yml:1")
    assert lines["models.config.dir"] == ("!ref home.path", "patch0.yml:1")
    assert lines["models.config.order[1]"] == ("local", "base.yml:10")
    assert lines["research"] == ("group", "base.yml:11")
    assert lines["engine"][0] == "leadline.research.plugin:plugin (disabled, isolate store: true)"
    assert "very secret" not in str(lines)


def test_an_empty_layer_changes_nothing() -> None:
    assert composed("", "# only a comment\n") == composed()


def test_a_layer_that_cannot_be_read_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "good.yml").write_text(BASE)
    assert compose([Layer.read(tmp_path / "good.yml")]).rows == composed().rows
    (tmp_path / "latin.yml").write_bytes(b"- \xff")
    for name in ("missing.yml", "latin.yml"):
        with pytest.raises(ConfigError, match=f"cannot read the layer .*{name}"):
            Layer.read(tmp_path / name)
