"""The stand-in's command line and its config files, as 0.5.23 handles them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lab.standins.sglang.package import arguments, config
from sglang_fleet.catalog.store import entries

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a wheel the catalogue lies beside the module."""
    monkeypatch.setattr(arguments, "catalogue", lambda: entries("0.5.23"))


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        arguments.parse(words)
    assert stop.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--no-such-flag"], "sglang serve: error: unrecognized arguments: --no-such-flag"),
        (["--tp-size", "eight"], "error: argument --tp-size/--tensor-parallel-size"),
        (["--grammar-backend", "x"], "error: argument --grammar-backend: invalid choice: 'x'"),
        (["--cuda-graph-max-bs", "8"], "error: ambiguous option: --cuda-graph-max-bs could match"),
    ],
)
def test_what_is_not_understood_exits_with_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(["--model-path", "m", *words], capsys)


def test_an_unambiguous_prefix_is_accepted() -> None:
    values, _ = arguments.parse(["--model", "m", "--mem-frac", "0.5"])
    assert values["mem_fraction_static"] == 0.5


def test_a_config_file_fills_in_and_the_command_line_wins(tmp_path: Path) -> None:
    path = tmp_path / "secrets.yaml"
    path.write_text("# keys\napi-key: 'it''s'\nport: 1\ntrust-remote-code: true\nskip-server-warmup: false\n")
    values, words = arguments.parse(["--model-path", "m", "--config", str(path), "--port", "2"])
    assert (values["api_key"], values["port"], values["trust_remote_code"]) == ("it's", 2, True)
    assert values["skip_server_warmup"] is False
    assert "config" not in values
    assert words[:2] == ["--api-key", "it's"]


@pytest.mark.parametrize("key", ["no-such-key", "api_key"])
def test_an_unknown_key_of_a_config_file_exits_with_2(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys are the flags themselves, with dashes: the real one does not translate underscores."""
    path = tmp_path / "a.yml"
    path.write_text(f"{key}: 1\n")
    assert f"unrecognized arguments: --{key} 1" in refused(["--model-path", "m", "--config", str(path)], capsys)


@pytest.mark.parametrize("name", ["absent.yaml", "wrong.txt"])
def test_a_config_file_that_is_not_there_or_not_yaml_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "wrong.txt").write_text("a: 1\n")
    with pytest.raises(ValueError, match="Config file"):
        arguments.parse(["--model-path", "m", "--config", str(tmp_path / name)])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: plain text # comment", {"a": "plain text"}),
        ('a: "q\\"u\\n"', {"a": 'q"u\n'}),
        ("a: 'it''s'", {"a": "it's"}),
        ("a: 0.88\nb: -1\nc: true\nd: null\ne:", {"a": 0.88, "b": -1, "c": True, "d": None, "e": None}),
        ('a: [1, "x"]\nb: {"c": 1}', {"a": [1, "x"], "b": {"c": 1}}),
        ("a:\n  - 1\n  - x\nb: y", {"a": [1, "x"], "b": "y"}),
        ("---\n'a': sk-1:2#3", {"a": "sk-1:2#3"}),
    ],
)
def test_the_small_yaml_reader_reads(text: str, value: dict[str, Any]) -> None:
    assert config.parse(text) == value


def test_the_small_yaml_reader_says_what_it_cannot_read() -> None:
    with pytest.raises(ValueError, match="does not know"):
        config.parse("a: 1\n  nested: 2\n")
