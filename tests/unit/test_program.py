"""The program that runs on hosts: one file, the same bytes everywhere, and nothing but the host's python3 needed."""

import ast
import base64
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host import probe
from sglang_fleet.host.__main__ import COMMANDS
from sglang_fleet.program import (
    PACKAGE,
    PROBE_MODULES,
    boot_source,
    kept_probe_source,
    probe_name,
    probe_source,
    program,
)

HOST = Path(__file__).parents[2] / "src" / "sglang_fleet" / "host"
PYTHON = (sys.executable, "-I", "-S")
HEXVERSION = f"{sys.hexversion:x}"
FULL_DISK = """\
import os
def full(_):
    raise OSError(28, "No space left on device")
os.fsync = full
"""


def ran(*arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PYTHON, *arguments], input=stdin, capture_output=True, text=True, check=False)


def boot(
    state: Path,
    command: str,
    request: Mapping[str, Any],
    *,
    source: str = "",
    read_only: bool = False,
    sends: bool = True,
) -> "subprocess.CompletedProcess[str]":
    packed = program()
    envelope = {
        "state": str(state),
        "digest": packed.digest,
        "program": base64.b64encode(packed.content).decode() if sends else "",
        "probe": probe_name(),
        "read_only": read_only,
        "request": {"state": str(state), **request},
    }
    return ran("-c", source or boot_source(), command, stdin=json.dumps(envelope))


def kept(state: Path) -> "subprocess.CompletedProcess[str]":
    """Run the probe that `state` keeps; its `root` keeps it from looking at this machine."""
    request = json.dumps({"state": "/s", "root": str(state / "nothing")})
    return ran("-c", kept_probe_source(), f"{state}/host/{probe_name()}", request)


def test_f5_who_only_looks_leaves_nothing_behind(tmp_path: Path) -> None:
    done = boot(tmp_path, "services", {}, read_only=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_same_sources_are_the_same_program_in_every_process() -> None:
    script = "from sglang_fleet.program import program; print(program().digest)"
    other = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert other.stdout.strip() == program().digest
    program.cache_clear()
    assert program().digest == other.stdout.strip()


def test_every_module_is_in_it_as_it_stands_and_the_probe_joined() -> None:
    with zipfile.ZipFile(BytesIO(program().content)) as archive:
        packed = {name: archive.read(name).decode() for name in archive.namelist() if name != "__main__.py"}
        assert {entry.date_time[0] for entry in archive.infolist()} == {2020}
    paths = set(HOST.rglob("*.py")) - set((HOST / "probe").iterdir())
    modules = {f"{PACKAGE}/{path.relative_to(HOST)}": path.read_text() for path in paths}
    assert packed == modules | {f"{PACKAGE}/probe.py": probe_source()}


def test_the_probe_is_all_of_its_modules() -> None:
    assert sorted(PROBE_MODULES) == sorted(
        path.stem for path in (HOST / "probe").glob("*.py") if path.stem != "__init__"
    )
    defined = {
        node.name for node in ast.parse(probe_source()).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    for path in (HOST / "probe").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            assert not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or node.name in defined


def test_what_others_take_from_the_probe_is_in_its_one_source_too() -> None:
    names: dict[str, object] = {"__name__": "probe"}
    exec(probe_source(), names)  # noqa: S102 - our own
    assert set(probe.__all__) <= names.keys()


@pytest.mark.parametrize("module", sorted(str(path.relative_to(HOST)) for path in HOST.rglob("*.py")))
def test_a_module_needs_nothing_but_the_standard_library(module: str) -> None:
    imported = set()
    for node in ast.walk(ast.parse((HOST / module).read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imported.add(str(node.module).partition(".")[0])
    assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_found_by_an_isolated_python(command: str, tmp_path: Path) -> None:
    (tmp_path / "program.pyz").write_bytes(program().content)
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'program.pyz')!r}); "
        f"import importlib; print(callable(importlib.import_module('{PACKAGE}.{COMMANDS[command]}').run))"
    )
    assert ran("-c", script).stdout == "True\n"


def test_an_unknown_command_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "program.pyz").write_bytes(program().content)
    refused = ran(str(tmp_path / "program.pyz"), "dance")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: unknown command 'dance'; known: abort, account, ")


def test_it_is_put_in_place_and_run(tmp_path: Path) -> None:
    done = boot(tmp_path, "account", {"users": ["root"]})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "host" / f"{program().digest}.pyz").read_bytes() == program().content
    assert {path.name for path in (tmp_path / "host").iterdir()} == {
        f"{program().digest}.pyz",
        f"{program().digest}-{HEXVERSION}.bin",
        f"{probe_name()}-{HEXVERSION}.bin",
    }


def loads_from(state: Path) -> str:
    """The file from which the program that is kept takes its modules."""
    place = state / "host" / f"{program().digest}.pyz"
    told = ran("-v", str(place), "dance").stderr  # Python says what it loads, and from where
    return next(line for line in told.splitlines() if f"import '{PACKAGE}'" in line or f"{PACKAGE}/__init__" in line)


def test_it_runs_compiled_unless_the_copy_is_damaged_or_gone(tmp_path: Path) -> None:
    boot(tmp_path, "account", {"users": []})
    compiled = tmp_path / "host" / f"{program().digest}-{HEXVERSION}.bin"
    assert compiled.name in loads_from(tmp_path)
    content = compiled.read_bytes()
    compiled.write_bytes(content[:-1] + b"x")
    assert f"{program().digest}.pyz" in loads_from(tmp_path)
    compiled.unlink()
    assert f"{program().digest}.pyz" in loads_from(tmp_path)


def test_a_program_that_is_kept_is_compiled_for_a_python_that_came_later(tmp_path: Path) -> None:
    boot(tmp_path, "account", {"users": []})
    compiled = tmp_path / "host" / f"{program().digest}-{HEXVERSION}.bin"
    compiled.unlink()
    assert boot(tmp_path, "services", {}, read_only=True, sends=False).returncode == 0
    assert not compiled.exists()
    assert boot(tmp_path, "account", {"users": []}, sends=False).returncode == 0
    assert compiled.exists()


def test_a_damaged_program_is_put_right(tmp_path: Path) -> None:
    boot(tmp_path, "account", {"users": []})
    place = tmp_path / "host" / f"{program().digest}.pyz"
    place.write_bytes(b"x")
    assert boot(tmp_path, "account", {"users": []}).returncode == 0
    assert place.read_bytes() == program().content


def test_a_state_folder_that_cannot_be_written_is_told_about(tmp_path: Path) -> None:
    (tmp_path / "host").write_text("")
    refused = boot(tmp_path, "account", {"users": []})
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"error: {tmp_path}: ")


def test_the_probe_that_a_host_keeps_answers_as_its_source_does(tmp_path: Path) -> None:
    boot(tmp_path, "account", {"users": []})
    by_source = ran("-c", probe_source(), json.dumps({"state": "/s", "root": str(tmp_path / "nothing")}))
    assert kept(tmp_path).returncode == 0
    assert json.loads(kept(tmp_path).stdout).keys() == json.loads(by_source.stdout).keys()


@pytest.mark.parametrize("content", [None, b"", b"x", b"\xe3\xff"])
def test_without_a_kept_probe_the_controller_is_told_to_send_it(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "host").mkdir()
        (tmp_path / "host" / f"{probe_name()}-{HEXVERSION}.bin").write_bytes(content)
    missing = kept(tmp_path)
    assert (missing.returncode, missing.stdout, missing.stderr) == (1, "", "no probe is kept here\n")


def test_a_probe_that_cannot_be_kept_stops_nothing(tmp_path: Path) -> None:
    """On a full disk the commands that need no room have to work: they tell how an activation ended."""
    boot(tmp_path, "account", {"users": []})
    for compiled in (tmp_path / "host").glob("*.bin"):
        compiled.unlink()
    assert boot(tmp_path, "account", {"users": []}, source=FULL_DISK + boot_source()).returncode == 0
    assert [path.name for path in (tmp_path / "host").iterdir()] == [f"{program().digest}.pyz"]
