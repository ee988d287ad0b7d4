"""Models through the real program: listed, added, tried, removed, given roles; keys stored and never shown."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from leadline.capabilities.models.providers.catalogue import SHIPPED
from leadline.testing.provider_server.behaviours import Behaviour, CallSpec
from leadline.testing.provider_server.server import ProviderServer, Received
from tests.composition.cli import PROGRAM, Command, Ended, program, provider
from tests.composition.conftest import FakeResearcher

SECRET = "sk-very-secret-0123456789"
VARIABLES = ("OPENAI_API_KEY", "DEEPSEEK_API_KEY", "MISTRAL_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def listed(command: Command, *options: str) -> dict[str, Mapping[str, Any]]:
    ended = command("models", "list", "--json", *options)
    assert ended.code == 0, ended.err
    return {row["model"]: row for row in ended.json}


def shows(ended: Ended, secret: str = SECRET) -> bool:
    return secret in ended.out.decode() or secret in ended.err


def login(
    provider_name: str, *options: str, key: str = SECRET, env: Mapping[str, str] | None = None
) -> Ended:
    return program("login", provider_name, *options, env=env, input=f"{key}\n".encode())


def test_without_a_model_the_list_has_the_embedded_one_and_says_how_to_add_another(
    command: Command, home: Path
) -> None:
    ended = command("models", "list")
    assert ended.code == 0
    assert ended.out.decode().splitlines()[1].split() == [
        "extractive/extractive",
        "default",
        "none",
        "embedded",
    ]
    assert "leadline models add PROVIDER/NAME --default" in ended.err
    assert "openai" in ended.err
    assert [*listed(command)] == ["extractive/extractive"]


def test_the_whole_list_has_models_whose_provider_lacks_its_key(command: Command, home: Path) -> None:
    rows = listed(command, "--all")
    assert rows["openai/gpt-5"]["key"] == "missing"
    assert not rows["openai/gpt-5"]["usable"]
    assert rows["openai/gpt-5"]["tried"] is None
    assert rows["openai/gpt-5"]["context_window"] == 400_000


def test_an_added_model_is_the_default_of_every_command_and_can_be_removed(
    command: Command, home: Path
) -> None:
    with provider(["Hello there."]) as (_, _, _, url):
        added = command(
            "models",
            "add",
            "work/large",
            "--base-url",
            url,
            "--context-window",
            "8192",
            "--default",
            "--json",
        )
        assert added.json == {"added": "work/large", "default": "work/large", "roles": {}}
        assert command("agent", "Hi").out.decode() == "Hello there.\n"
    row = listed(command)["work/large"]
    assert (row["default"], row["source"], row["context_window"], row["key"]) == (True, "added", 8192, "none")
    assert "models.yml" in command("config", "show").out.decode()
    removed = command("models", "remove", "work/large", "--json")
    assert removed.json["default"] == "extractive/extractive"
    assert [*listed(command)] == ["extractive/extractive"]
    assert "work/large" in (home / "models.last-good.yml").read_text()
    assert command("models", "remove", "work/large").code == 2


def test_what_cannot_be_used_is_refused_and_nothing_is_written(command: Command, home: Path) -> None:
    for words in (
        ["plain"],
        ["nobody/m"],
        ["work/m", "--like", "nope"],
        ["work/m", "--base-url", "ftp://host"],
        ["work/m", "--base-url", "http://user:pass@host/v1"],
        ["work/m", "--context-window", "0"],
        ["work/m", "--role", "boss"],
        ["work/m", "--base-url", "http://host/v1", "--key-env", "WORK KEY"],
        ["work/m", "--base-url", "http://host/v1", "--key-env", SECRET],
    ):
        ended = command("models", "add", *words)
        assert ended.code == 2, words
        assert not shows(ended), "the key that was taken for a name is shown"
    assert command("models", "default", "nobody/m").code == 2
    assert not (home / "models.yml").exists()


def test_a_file_that_was_damaged_is_not_written_over(command: Command, home: Path) -> None:
    command("models", "add", "local/a")
    command("models", "add", "local/b")
    (home / "models.yml").write_text("- id: models\n  mer")
    ended = command("models", "add", "local/c")
    assert (ended.code, (home / "models.yml").read_text()) == (2, "- id: models\n  mer")
    assert "models.last-good.yml" in ended.complaint
    (home / "models.yml").write_bytes((home / "models.last-good.yml").read_bytes())
    assert command("models", "add", "local/c").code == 0


def test_what_the_user_wrote_goes_over_what_was_added_and_that_is_said(command: Command, home: Path) -> None:
    home.mkdir()
    (home / "leadline.yml").write_text("- id: models\n  merge: {default: local/mine}\n")
    ended = command("models", "default", "local/other")
    assert ended.code == 0
    assert "leadline.yml" in ended.complaint
    assert command("models", "default").out.decode() == "local/mine\n"


@pytest.mark.parametrize(
    ("config", "line", "words"),
    [
        (
            "    profiles:\n      mine:\n        reasoning_replay: sometimes\n",
            5,
            "profile 'mine': reasoning_replay",
        ),
        (
            "    profiles:\n      mine:\n        extends: local\n        quota_patterns: ['(']\n",
            5,
            "quota_patterns",
        ),
        ("    providers:\n      work:\n        settings: {strem: true}\n", 5, "strem"),
        (
            "    providers:\n      work:\n        models:\n          m: {settings: {tools: perhaps}}\n",
            5,
            "models.m.tools",
        ),
        ("    providers:\n      work:\n        profile: nope\n", 5, "no model profile 'nope'"),
        ("    roles:\n      strong: gpt\n", 4, "provider/name"),
        ("    default: gpt\n", 3, "provider/name"),
        (
            f"    providers:\n      work:\n        base_url: http://host/v1\n        api_key_env: {SECRET}\n",
            5,
            "environment variable",
        ),
    ],
)
def test_wrong_data_stops_the_start_with_file_line_and_key(
    command: Command, home: Path, config: str, line: int, words: str
) -> None:
    home.mkdir()
    (home / "leadline.yml").write_text(f"- id: models\n  merge:\n{config}")
    ended = command("models", "list")
    assert ended.code == 2
    assert f"leadline.yml:{line}" in ended.complaint
    assert words in ended.complaint
    assert not shows(ended)


def test_a_key_is_stored_for_its_owner_alone_and_shown_by_nothing(home: Path) -> None:
    stored = login("openai")
    assert (stored.code, shows(stored)) == (0, False)
    file = home / "credentials.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    for words in (["models", "list", "--all", "--json"], ["config", "show"], ["doctor"], ["login", "nobody"]):
        assert not shows(program(*words)), words
    assert "openai (file)" in program("doctor").out.decode()
    written = [path for path in home.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert written == [file]


def test_a_stored_key_is_sent_and_a_variable_goes_before_it(home: Path) -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(ProviderServer(["one", "two", "three"])) as server,
    ):
        ask = ["agent", "Hi", "--model", "openai/gpt-5", "--base-url", server.base_url]
        missing = program(*ask)
        assert missing.code == 1
        assert "leadline login openai" in missing.complaint
        login("openai")
        assert program(*ask).code == 0
        assert program(*ask, env={"OPENAI_API_KEY": "from-env"}).code == 0
        sent = [request.headers["authorization"] for request in server.requests]
        assert sent == [f"Bearer {SECRET}", "Bearer from-env"]
        said = login("openai", env={"OPENAI_API_KEY": "from-env"})
        assert "OPENAI_API_KEY" in said.complaint
        assert "from-env" not in said.err
        assert program("login", "openai", "--remove").code == 0
        assert program(*ask).code == 1
    logs = b"".join(path.read_bytes() for path in (home / "sessions").rglob("*") if path.is_file())
    assert SECRET.encode() not in logs
    assert b"from-env" not in logs


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_at_a_terminal_the_key_is_asked_for_and_not_echoed(home: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [PROGRAM, "login", "openai"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown = b""
        while b"Key of openai: " not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, f"{SECRET}\n".encode())
        with contextlib.suppress(OSError):
            while part := os.read(ours, 1024):
                shown += part
        assert process.wait() == 0
    os.close(ours)
    assert b"is stored in" in shown
    assert SECRET.encode() not in shown
    assert SECRET in (home / "credentials.json").read_text()


@pytest.mark.parametrize("key", ["", "   ", "two words", "schlüssel"])
def test_what_is_no_key_is_not_stored(home: Path, key: str) -> None:
    ended = login("openai", key=key)
    assert ended.code == 2
    assert not (home / "credentials.json").exists()


def test_a_provider_that_is_not_there_has_no_key(home: Path) -> None:
    ended = login("opanai")
    assert (ended.code, shows(ended)) == (2, False)
    assert "did you mean 'openai'" in ended.complaint


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_keys_that_others_could_read_are_not_used_and_doctor_says_so(command: Command, home: Path) -> None:
    login("openai")
    (home / "credentials.json").chmod(0o644)
    command("models", "default", "openai/gpt-5")
    ended = command("doctor")
    assert ended.code == 1
    (line,) = [one for one in ended.out.decode().splitlines() if "default model openai/gpt-5" in one]
    assert line.startswith("missing")
    assert "chmod 600" in line
    assert command("agent", "Hi").code == 1


def test_a_server_that_wants_no_key_is_usable_whatever_the_store_of_keys_is_like(
    command: Command, home: Path
) -> None:
    home.mkdir()
    (home / "credentials.json").write_text("{")
    command("models", "add", "ollama/m")
    assert listed(command)["ollama/m"]["usable"]


def test_a_damaged_store_of_keys_is_told_without_its_content(home: Path) -> None:
    login("openai")
    (home / "credentials.json").write_text(f'{{"version": 1, "keys": {{"openai": "{SECRET}"')
    for words in (["doctor"], ["models", "list"], ["login", "openai", "--remove"]):
        ended = program(*words)
        assert not shows(ended)
        assert "damaged" in ended.err + ended.out.decode()


KEYRING = """
import json, os
from pathlib import Path
FILE = Path(os.environ["FAKE_KEYRING"])
class Backend:
    priority = 5
def get_keyring():
    return Backend()
def _all():
    return json.loads(FILE.read_text()) if FILE.exists() else {}
def get_password(service, user):
    return _all().get(service + "|" + user)
def set_password(service, user, password):
    FILE.write_text(json.dumps({**_all(), service + "|" + user: password}))
def delete_password(service, user):
    FILE.write_text(json.dumps({k: v for k, v in _all().items() if k != service + "|" + user}))
"""


def test_a_keyring_is_used_where_there_is_one(home: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "keyring.py").write_text(KEYRING)
    ring = tmp_path / "ring.json"
    env = {"PYTHONPATH": str(tmp_path / "site"), "FAKE_KEYRING": str(ring)}
    stored = login("mistral", "--json", env=env)
    assert stored.json == {"provider": "mistral", "stored": "keyring"}
    assert SECRET not in (home / "credentials.json").read_text()
    assert [*json.loads(ring.read_text()).values()] == [SECRET]
    assert "mistral (keyring)" in program("doctor", env=env).out.decode()
    assert "cannot be used here" in program("doctor").out.decode()
    assert login("groq", "--store", "file", "--json", env=env).json["stored"] == "file"
    assert program("login", "mistral", "--remove", env=env).code == 0
    assert json.loads(ring.read_text()) == {}
    assert login("openai", "--store", "keyring").code == 2


def test_a_key_that_stands_in_a_file_is_not_shown_by_config_show(command: Command, home: Path) -> None:
    home.mkdir()
    (home / "leadline.yml").write_text(
        f"- id: models\n  merge:\n    providers:\n      work:\n        api_key: {SECRET}\n"
        f"        api_key_env: WORK_KEY\n        settings: {{headers: {{authorization: {SECRET}}}}}\n"
    )
    ended = command("config", "show")
    assert (ended.code, shows(ended)) == (0, False)
    assert "WORK_KEY" in ended.out.decode()
    (home / "leadline.yml").write_text(
        f"- id: models\n  merge:\n    providers:\n      work: [{SECRET}]\n      other: {{api_key: [{SECRET}]}}\n"
    )
    refused = command("config", "show"), command("models", "list")
    assert refused[1].code == 2
    assert not shows(refused[1])


def test_a_test_of_a_model_asks_for_an_answer_and_a_tool_call(command: Command, home: Path) -> None:
    def answers(request: Received) -> Behaviour:
        done = any(message["role"] == "tool" for message in request.messages)
        return Behaviour(text="OK") if done else Behaviour(calls=(CallSpec("confirm", {"word": "ready"}),))

    with provider(answers) as (_, model, *address):
        ended = command("models", "test", model, *address, "--json")
    assert ended.code == 0
    assert (ended.json["answered"], ended.json["called_tool"], ended.json["text"]) == (True, True, "OK")
    assert ended.json["tokens"] > 0
    with provider(["Just words."]) as (_, model, *address):
        ended = command("models", "test", model, *address)
    assert ended.code == 1
    assert "did not call the tool" in ended.out.decode()
    assert f"leadline models add {model} --no-tools" in ended.complaint


@pytest.mark.parametrize(
    "arguments", [("agent", "hi"), ("research", "hi", "--corpus", "."), ("models", "test")]
)
def test_a_model_that_names_no_provider_is_refused_in_its_own_words(
    command: Command, home: Path, arguments: tuple[str, ...]
) -> None:
    named = ("foo",) if arguments[0] == "models" else ("--model", "foo")
    ended = command(*arguments, *named)
    assert ended.code == 2
    assert ended.complaint == (
        "leadline: model 'foo' is not of the form provider/name; write for example deepseek/deepseek-chat"
    )


def test_a_test_of_a_model_that_cannot_be_asked_says_why(command: Command, home: Path) -> None:
    ended = command("models", "test", "openai/gpt-5", "--json")
    assert ended.code == 1
    assert "leadline login openai" in ended.json["problem"]
    assert command("models", "test", "nobody/m").code == 2


def test_servers_of_this_machine_are_looked_for_only_when_asked(command: Command, home: Path) -> None:
    home.mkdir()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(_Models()) as server:
        (home / "leadline.yml").write_text(
            "- id: models\n  merge:\n    providers:\n"
            f"      ollama: {{base_url: 'http://127.0.0.1:{server.port}/v1'}}\n"
            "      vllm: {base_url: 'http://192.0.2.1:8000/v1'}\n"
            "      llamacpp: {base_url: 'http://127.0.0.1:9/v1'}\n"
            "      lmstudio: {base_url: 'http://127.0.0.1:9/v1'}\n"
        )
        assert "ollama/qwen3:8b" not in listed(command)
        assert server.asked == []
        ended = command("models", "list", "--discover")
        assert server.asked == ["GET /v1/models HTTP/1.1"]
    assert "ollama/qwen3:8b" in ended.out.decode()
    assert "192.0.2.1" not in ended.err
    assert "nothing answers there" in ended.err


class _Models:
    """A server that lists one model."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.port = 0

    async def __aenter__(self) -> _Models:
        import asyncio

        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    async def _serve(self, reader: Any, writer: Any) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.asked.append(head.split(b"\r\n")[0].decode())
        body = json.dumps({"object": "list", "data": [{"id": "qwen3:8b"}]}).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
            + f"content-length: {len(body)}\r\n\r\n".encode()
            + body
        )
        await writer.drain()
        writer.close()


def test_each_role_is_asked_of_its_model_and_a_named_model_goes_before_all(
    command: Command, home: Path, corpus: Path
) -> None:
    researcher = FakeResearcher()
    asked: list[str] = []

    def answers(request: Received) -> Behaviour:
        asked.append(str(request.body["model"]))
        return researcher(request)

    with provider(answers) as (_, _, _, url):
        command("models", "add", "local/plain", "--base-url", url, "--default")
        command("models", "add", "local/reader", "--role", "standard")
        command("models", "add", "local/thinker", "--role", "strong")
        question = ["research", "What may a hotel night cost?", "--corpus", str(corpus)]
        ended = command(*question, "--json")
        assert ended.code == 0, ended.err
        assert asked[0] == asked[-1] == "thinker"
        assert set(asked) == {"thinker", "reader"}
        assert ended.json["metadata"]["model"] == "local/thinker"
        replayed = command("replay", ended.json["id"])
        assert replayed.code == 0, replayed.out
        assert command("audit", ended.json["id"]).code == 0
        asked.clear()
        assert command(*question, "--model", "local/one").code == 0
        assert set(asked) == {"one"}


def test_the_first_start_says_what_works_now(home: Path, corpus: Path) -> None:
    words = ["research", "What may a hotel night cost?", "--corpus", str(corpus)]
    first = program(*words)
    assert first.code == 0
    assert "leadline models add" in first.err
    assert "leadline models add" not in program(*words).err


def test_doctor_says_in_one_line_what_the_default_model_lacks(command: Command, home: Path) -> None:
    command("models", "default", "mistral/mistral-large-latest")
    command("models", "default", "azure/mine", "--role", "strong")
    ended = command("doctor")
    assert ended.code == 1
    lines = [one for one in ended.out.decode().splitlines() if one.startswith("missing")]
    assert len(lines) == 2
    assert "leadline login mistral, or set MISTRAL_API_KEY" in lines[0]
    assert "azure/mine" in lines[1]


def test_the_page_on_models_has_every_provider_and_claims_no_trial() -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    for name in SHIPPED:
        if name != "openai-compatible":
            (row,) = [
                line for line in page.splitlines() if line.startswith(f"| `{name}` | ") and "|" in line[3:]
            ][:1]
            assert "*constructed*" in row


def test_a_model_over_the_bridge_is_added_like_any_other_and_says_what_it_lacks(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("any_llm", reason="the extra leadline[bridge] is not installed")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert command("models", "add", "bridge/openai/gpt-5", "--default").code == 0
    assert listed(command)["bridge/openai/gpt-5"]["usable"]
    assert "address" not in command("doctor").out.decode()
    ended = command("models", "test")
    assert ended.code == 1
    assert "set OPENAI_API_KEY" in ended.out.decode()
    with provider(["Just words."]) as (_, _, _, url):
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        ended = command("agent", "hi", "--model", "bridge/openai/gpt-5", "--base-url", url)
    assert (ended.code, ended.out.decode().strip()) == (0, "Just words.")
    assert not shows(ended)
