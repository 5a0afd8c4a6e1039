"""Compose files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglang_fleet.importing import UnreadableError
from sglang_fleet.importing.compose import is_compose
from tests.unit.importing.support import argv, imported, loaded, notes, only, rendered

if TYPE_CHECKING:
    from pathlib import Path

TWO = """\
x-common: &common
  image: lmsysorg/sglang:v0.5.5
  restart: unless-stopped
  environment: &env
    NCCL_DEBUG: INFO
    SGLANG_FLAG: true
services:
  chat:
    <<: *common
    entrypoint: ["python3", "-m", "sglang.launch_server"]
    command:
      - --model-path
      - /models/chat
      - --port
      - 30000
      - --trust-remote-code
    volumes: ["/data:/models"]
    deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ["0", "1"], capabilities: [gpu]}]}}}
  embed:
    <<: *common
    command: >
      bash -c "python3 -m sglang.launch_server --model-path ${MODEL:-org/embed} --port ${PORT}
      --is-embedding"
    environment: {<<: *env, EXTRA: a b}
    gpus: [{device_ids: ["2"]}]
    shm_size: 16g
  web:
    image: nginx
"""


def test_each_service_that_starts_sglang_becomes_one() -> None:
    found = imported(TWO, "compose.yml")
    assert rendered_words(found, "chat") == "--model-path /data/chat --port 30000 --trust-remote-code"
    assert list(loaded(found)) == ["chat", "embed"]
    assert (loaded(found)["chat"]["gpus"], loaded(found)["embed"]["gpus"]) == ([0, 1], [2])
    assert loaded(found)["chat"]["environment"] == {"SGLANG_FLAG": "true"}
    assert loaded(found)["embed"]["environment"] == {"SGLANG_FLAG": "true", "EXTRA": "a b"}
    assert loaded(found)["embed"]["nccl"] == {"debug": "INFO"}


def rendered_words(found: object, name: str) -> str:
    services = loaded(found)  # type: ignore[arg-type]
    args = services[name]["args"]
    return " ".join(
        f"--{key.replace('_', '-')}" + ("" if value is True else f" {value}") for key, value in args.items()
    )


def test_lines_of_the_file_are_named() -> None:
    said = notes(imported(TWO, "compose.yml"))
    assert "2: image lmsysorg/sglang:v0.5.5" in said
    assert "26: shm_size of embed is not carried over" in said
    assert "22: MODEL can be set from outside; its default was taken" in said


def test_each_note_stands_at_its_own_line() -> None:
    text = (
        "services:\n  a:\n    image: lmsysorg/sglang:latest\n    volumes:\n      - /a:/b\n      - cache:/c\n"
        "    ports:\n      - 1:1\n      - ${PORT:-8000}:30000\n    env_file:\n      - x.env\n      - y.env\n"
        "    working_dir: /app\n    command: >\n      python3 -m sglang.launch_server\n      --model-path m\n"
        "      --port 30000\n      --frobnicate 1\n    shm_size: 1g\n"
    )
    said = notes(imported(text, "c.yml"))
    for line, note in [
        (3, "image lmsysorg/sglang:latest"),
        (6, "volume cache on /c"),
        (9, "PORT can be set from outside"),
        (9, "clients reached the server on port 8000"),
        (11, "x.env is not here"),
        (12, "y.env is not here"),
        (13, "working directory /app"),
        (18, "--frobnicate"),
        (19, "shm_size of a is not carried over"),
    ]:
        assert f"{line}: {note}" in said


def test_a_dotenv_beside_it_gives_the_values(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MODEL=org/other\nPORT='30009'\n# C=1\n")
    args = loaded(imported(TWO, "compose.yml", folder=tmp_path))["embed"]["args"]
    assert (args["model_path"], args["port"]) == ("org/other", 30009)


def test_an_env_file_is_read_and_environment_wins(tmp_path: Path) -> None:
    (tmp_path / "prod.env").write_text('A=1\nB="two"\n')
    text = (
        "services:\n  a:\n    image: sglang\n    command: --model-path m\n"
        "    env_file: prod.env\n    environment: [A=3]\n"
    )
    assert only(imported(text, "c.yml", folder=tmp_path))["environment"] == {"A": "3", "B": "two"}
    mapping = text.replace("[A=3]", "{A: 4}")
    assert only(imported(mapping, "c.yml", folder=tmp_path))["environment"] == {"A": "4", "B": "two"}
    assert "prod.env is not here" in notes(imported(text, "c.yml"))


def test_a_dollar_that_is_doubled_is_one() -> None:
    text = "services:\n  a:\n    image: sglang\n    command: ['--model-path', '/m$${X}']\n"
    assert argv(imported(text, "c.yml")) == "--model-path /m${X}"


def test_limits_and_ports() -> None:
    text = (
        "services:\n  a:\n    image: sglang\n    command: sglang serve --model-path m --port 30000\n"
        '    ulimits: {memlock: -1, nofile: {soft: 65536, hard: 65536}}\n    ports: ["8000:30000"]\n'
    )
    found = imported(text, "c.yml")
    assert only(found)["limits"] == {"nofile": 65536}
    assert "clients reached the server on port 8000" in notes(found)
    assert len(rendered(found)) == 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("services:\n  a: {b: [}\n", 2, "expected YAML"),
        (
            "services:\n  a:\n    command: python3 -m sglang.launch_server 'open\n",
            3,
            "expected a closing quote in command",
        ),
        ("services:\n  a:\n    image: me/web\n", 1, "expected a start of SGLang"),
        ("services:\n- a\n", 1, "expected a mapping of services"),
    ],
)
def test_a_file_that_cannot_be_used_says_where(text: str, line: int, message: str) -> None:
    with pytest.raises(UnreadableError, match=message) as error:
        imported(text, "c.yml")
    assert error.value.line == line


def test_a_compose_file_is_told_by_its_services() -> None:
    assert is_compose("version: '3'\nservices: # x\n  a: {}\n")
    assert not is_compose("#!/bin/sh\necho services:\n")
