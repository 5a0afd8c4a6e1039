"""The command: what goes where, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from sglang_fleet.cli.import_ import command

if TYPE_CHECKING:
    from pathlib import Path

UNIT = (
    "[Service]\nEnvironmentFile=/etc/x.env\nNice=5\n"
    "ExecStart=/v/bin/python -m sglang.launch_server --model-path /m --api-key poison-5ecret\n"
)


@pytest.fixture(name="unit")
def a_unit(tmp_path: Path) -> Path:
    path = tmp_path / "sglang-k26.service"
    path.write_text(UNIT)
    return path


def run(*words: object, given: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(word) for word in words], input=given)


def test_the_yaml_goes_out_and_the_notes_go_to_standard_error(unit: Path) -> None:
    done = run(unit)
    assert done.exit_code == 0
    assert YAML(typ="safe", pure=True).load(done.stdout)["services"]["k26"]["args"] == {"model_path": "/m"}
    assert f"{unit}:3: Nice=5 is not carried over" in done.stderr
    assert "#   3: Nice=5 is not carried over" in done.stdout
    assert "poison-5ecret" not in done.output


def test_standard_input_is_read(unit: Path) -> None:
    done = run("-", "--name", "k7", given=unit.read_text())
    assert done.exit_code == 0
    assert "  k7:" in done.stdout
    assert "standard input:3: Nice=5" in done.stderr


def test_json_has_settings_and_notes(unit: Path) -> None:
    found = json.loads(run(unit, "--json").stdout)
    assert found["settings"]["services"]["k26"]["secrets"] == {"api_key": {"env": "K26_API_KEY"}}
    assert {"line": 3, "text": "Nice=5 is not carried over"} in found["notes"]


def test_an_output_file_is_written_once(unit: Path, tmp_path: Path) -> None:
    output = tmp_path / "all.yml"
    assert run(unit, "--output", output).exit_code == 0
    written = output.read_text()
    again = run(unit, "--output", output)
    assert (again.exit_code, output.read_text()) == (1, written)
    assert "is there already: nothing was written" in again.stderr


def test_files_are_looked_for_in_the_root(unit: Path, tmp_path: Path) -> None:
    (tmp_path / "host" / "etc").mkdir(parents=True)
    (tmp_path / "host" / "etc" / "x.env").write_text("A=1\n")
    done = run(unit, "--root", tmp_path / "host")
    assert 'environment: {A: "1"}' in done.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[Service]\nExecStart=/usr/bin/vllm serve\n", ":2: expected a start of SGLang, found that the unit starts"),
        (b"[Service]\nExecStart='open\n", ":2: expected a closing quote in ExecStart"),
        (b"[Service]\n\xff\n", ":2: expected UTF-8 text"),
        (b"[Service]\nA=\0\n", ":2: expected text, found a NUL character"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(unit: Path, content: bytes, said: str) -> None:
    unit.write_bytes(content)
    done = run(unit)
    assert done.exit_code == 1
    assert f"{unit}{said}" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sglang-version", "0.4.1"), "no flag catalogue for SGLang 0.4.1"),
        (("--name", "No Name"), "'No Name' is no name of a service"),
        (("--output", "/dev/null/x"), "cannot be written"),
    ],
)
def test_options_that_make_no_sense_are_refused(unit: Path, words: tuple[str, ...], said: str) -> None:
    done = run(unit, *words)
    assert done.exit_code == 1
    assert said in done.stderr


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = run(tmp_path / "none.service")
    assert done.exit_code == 1
    assert "cannot be read: no such file" in done.stderr
