"""`init` makes a folder that works as it is, and never touches one that holds something."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from sglang_fleet.cli.common import load_settings
from sglang_fleet.starting import starting_files

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_the_folder_holds_what_it_should(run: Run, tmp_path: Path) -> None:
    assert run("init", "new/fleet").exit_code == 0
    assert written(tmp_path / "new/fleet") == starting_files([])


def test_the_new_folder_can_be_used_at_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("init", "fleet", "--host", "h2", "--host", "deploy@h1").exit_code == 0
    monkeypatch.chdir(tmp_path / "fleet")
    settings = load_settings(None)
    assert list(settings.hosts) == ["h2", "h1"]
    assert settings.loaded.problems == []
    assert list(settings.loaded.deployments) == ["h2", "h1"]
    assert not settings.loaded.strays
    assert not settings.notes


def test_it_says_what_comes_next_in_few_lines_of_a_terminals_width(run: Run) -> None:
    shown = run("init", "my fleet").stdout
    lines = shown.partition("Next:\n")[2].splitlines()
    assert 3 <= len(lines) <= 6
    assert lines[0] == "  cd 'my fleet'"
    assert max(map(len, shown.splitlines())) <= 80
    assert "pyinfra" not in shown.partition("Next:")[2]
    assert [line.split("  #")[0].strip() for line in lines[-2:]] == [
        "sglang-fleet plan inventory/prod.py",
        "sglang-fleet apply inventory/prod.py",
    ]


def test_the_result_as_json(run: Run) -> None:
    result = json.loads(run("init", "fleet", "--json").stdout)
    assert result["folder"] == "fleet"
    assert result["files"] == sorted(starting_files([]))
    assert result["next"]


def test_a_folder_that_holds_something_is_refused_untouched(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fleet/inventory").mkdir(parents=True)
    (tmp_path / "fleet/deploy.py").write_text("mine")
    result = run("init", "fleet")
    assert result.exit_code == 1
    assert result.stderr == "fleet is not empty, it holds deploy.py, inventory: name a new folder\n"
    assert written(tmp_path / "fleet") == {"deploy.py": "mine"}


def test_a_folder_that_holds_much_is_described_shortly(run: Run, tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"file{number}").touch()
    assert "file5 and 3 more" in run("init", ".").stderr.replace("\n", " ")


def test_an_empty_folder_or_a_fresh_repository_will_do(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert run("init", ".").exit_code == 0
    assert (tmp_path / "deploy.py").is_file()


def test_a_file_is_no_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fleet").touch()
    result = run("init", "fleet")
    assert (result.exit_code, result.stderr) == (1, "fleet: Not a directory\n")


def test_a_folder_that_cannot_be_made_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run("init", "file/fleet")
    assert (result.exit_code, result.stderr) == (1, "file/fleet: Not a directory\n")


def test_what_is_no_host_is_a_usage_error_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    result = run("init", "fleet", "--host", "a b")
    assert result.exit_code == 2
    assert "'a b' is no name of a host" in result.stderr
    assert not (tmp_path / "fleet").exists()
