"""The command: what goes where, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from sglang_fleet.cli.import_ import command
from sglang_fleet.cli.init import command as init
from sglang_fleet.starting import SETTINGS, starting_files

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
    assert "is there already, and is not the example that init writes: nothing was written" in " ".join(
        again.stderr.split()
    )
    assert "take its services over" in " ".join(again.stderr.split())


def test_the_untouched_example_of_a_new_folder_is_replaced(unit: Path, tmp_path: Path) -> None:
    assert CliRunner().invoke(init, [str(tmp_path / "fleet"), "--host", "h1"]).exit_code == 0
    output = tmp_path / "fleet/group_vars/all.yml"
    done = run(unit, "--output", output)
    assert done.exit_code == 0
    assert f"wrote {output} in place of init's example" in done.stderr
    assert YAML(typ="safe", pure=True).load(output)["services"]["k26"]["args"] == {"model_path": "/m"}


def test_an_example_that_was_changed_is_kept(unit: Path, tmp_path: Path) -> None:
    output = tmp_path / "all.yml"
    output.write_text(starting_files([])[SETTINGS] + "# mine\n")
    assert run(unit, "--output", output).exit_code == 1
    assert output.read_text().endswith("# mine\n")


def test_nothing_is_replaced_when_the_import_fails(tmp_path: Path) -> None:
    output = tmp_path / "all.yml"
    output.write_text(starting_files([])[SETTINGS])
    assert run("-", "--output", output, given="vllm serve m\n").exit_code == 1
    assert output.read_text() == starting_files([])[SETTINGS]


def test_a_folder_that_is_not_there_is_said(unit: Path, tmp_path: Path) -> None:
    done = run(unit, "--output", tmp_path / "none/all.yml")
    assert (done.exit_code, "there is no folder" in done.stderr) == (1, True)


def test_on_a_terminal_each_note_is_said_once(unit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sglang_fleet.cli.import_._is_terminal", lambda: True)
    done = run(unit)
    assert "#   3: Nice=5 is not carried over" in done.stdout
    assert done.stderr == ""
    assert "Nice=5" in run(unit, "--json").stderr


def test_files_are_looked_for_in_the_root(unit: Path, tmp_path: Path) -> None:
    (tmp_path / "host" / "etc").mkdir(parents=True)
    (tmp_path / "host" / "etc" / "x.env").write_text("A=1\n")
    done = run(unit, "--root", tmp_path / "host")
    assert 'environment: {A: "1"}' in done.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[Service]\nExecStart=/usr/bin/vllm serve\n", ":2: this starts vLLM, not SGLang"),
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


def test_the_first_examples_of_the_page_work_in_a_new_folder(unit: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/import.md").read_text()
    examples = [line.split() for line in page.splitlines() if line.startswith("    ") and "--output" in line]
    examples = [words for words in examples if "sglang-fleet" in words]
    assert len(examples) == 2
    for number, words in enumerate(examples):
        folder = tmp_path / f"fleet{number}"
        assert CliRunner().invoke(init, [str(folder), "--host", "h1"]).exit_code == 0
        [output] = words[words.index("--output") + 1 :]
        assert run(unit, "--output", folder / output).exit_code == 0


def test_on_a_terminal_notes_of_a_file_are_wrapped_and_commands_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sglang_fleet.cli.import_._is_read_by_a_person", lambda: True)
    text = "docker run lmsysorg/sglang:v0.5.9 python3 -m sglang.launch_server --model-path m\n"
    shown = run("-", "--output", tmp_path / "all.yml", given=text).stderr.splitlines()
    long = [line for line in shown if len(line) > 80]
    assert [line.split()[0] for line in long if "pytest" not in line] == ["echo"]
    assert "uv pip compile" in long[0]
