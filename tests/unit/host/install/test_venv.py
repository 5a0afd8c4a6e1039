"""Venvs: complete and verified under their name, or not there at all (F25)."""

import json
import stat
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host import children
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.install import venv
from tests.unit.host.stand_ins import (
    ME,
    PYTHON,
    REAL_UV,
    UV_VERSION,
    Programs,
    collector,
    sha256,
    wait_until_gone,
    wheel,
)


@pytest.fixture(name="programs")
def only_fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path / "bin", monkeypatch)


@pytest.fixture(name="demo")
def demonstration(tmp_path: Path) -> Path:
    files = {"demo/__init__.py": "import sys\nassert sys.prefix != sys.base_prefix\n"}
    return wheel(tmp_path / "wheels", "demo", "1.0", files)


def request(tmp_path: Path, demo: Path, **change: Any) -> dict[str, Any]:
    return {
        "state": str(tmp_path / "state"),
        "venv_id": "v1",
        "requirements": f"demo==1.0 --hash=sha256:{sha256(demo)}\n",
        "python": PYTHON,
        "index_url": None,
        "find_links": [str(demo.parent)],
        "uv": {"version": UV_VERSION, "sha256": {}},
        "package": "demo",
        "version": "1.0",
        "imports": ["demo"],
        "user": ME,
        "deadline": 60,
        **change,
    }


def run(asked: dict[str, Any]) -> list[str]:
    said, say = collector()
    venv.run(asked, say=say)
    return said


def names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "state/venvs").iterdir() if not path.name.startswith(".lock-"))


def real(programs: Programs) -> None:
    (programs.folder / "uv").symlink_to(REAL_UV)


def fake(programs: Programs, pip: str) -> None:
    """Have a uv whose `pip install` does what the test says, in a venv that looks like one."""
    programs.write(
        "uv",
        f"""case $1 in
--version) echo 'uv {UV_VERSION} (fake)' ;;
venv) for place; do :; done; mkdir -p $place/bin; ln -s {PYTHON} $place/bin/python ;;
pip) {pip} ;;
esac""",
    )


def test_a_folder_of_wheels_is_all_that_is_asked(tmp_path: Path, demo: Path, programs: Programs) -> None:
    real(programs)
    requirements = f"idna==3.10 --hash=sha256:{sha256(demo)}\n"  # which an index has, and the folder has not
    with pytest.raises(HostError, match=r"^uv pip install exited.*idna was not found in the provided"):
        run(request(tmp_path, demo, requirements=requirements, index_url=None))


def test_a_venv_is_built_verified_and_whole(tmp_path: Path, demo: Path, programs: Programs) -> None:
    real(programs)
    said = run(request(tmp_path, demo))
    place = tmp_path / "state/venvs/v1"
    assert names(tmp_path) == ["v1"]
    assert json.loads((place / ".sglang-fleet.json").read_text())["packages"] == 1
    assert "installing 1 packages" in said
    assert said[-1] == "venv v1 is complete: 1 packages"
    # It works where it was moved to, and is compiled already.
    script = "import demo; print(demo.__cached__, demo.__file__)"
    cached, file = subprocess.run(
        [place / "bin/python", "-I", "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert Path(cached).is_file()
    assert file.startswith(str(place))
    for path in (place, place / "bin", Path(file)):
        assert stat.S_IMODE(path.stat().st_mode) & 0o055 >= 0o044
    assert not stat.S_IMODE(Path(file).stat().st_mode) & 0o022


def test_a_complete_one_costs_nothing(tmp_path: Path, demo: Path, programs: Programs) -> None:
    real(programs)
    run(request(tmp_path, demo))
    (programs.folder / "uv").unlink()
    assert run(request(tmp_path, demo)) == ["venv v1 is there already"]


@pytest.mark.parametrize("damage", [".sglang-fleet.json", "bin/python"])
def test_one_that_is_not_complete_is_built_anew(tmp_path: Path, demo: Path, programs: Programs, damage: str) -> None:
    real(programs)
    run(request(tmp_path, demo))
    (tmp_path / "state/venvs/v1" / damage).unlink()
    run(request(tmp_path, demo))
    assert names(tmp_path) == ["v1"]
    assert venv.is_complete(str(tmp_path / "state/venvs/v1"), "v1")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"requirements": f"demo==1.0 --hash=sha256:{'0' * 64}\n"}, "uv pip install exited"),
        ({"requirements": f"absent==1.0 --hash=sha256:{'0' * 64}\n"}, "uv pip install exited"),
        ({"version": "1.1"}, "demo 1.0 is installed, not 1.1"),
        ({"package": "other"}, "other"),
        ({"imports": ["demo", "demo.absent"]}, r"demo\.absent"),
    ],
)
def test_what_fails_leaves_nothing_and_the_others_alone_f25(
    tmp_path: Path, demo: Path, programs: Programs, change: dict[str, Any], words: str
) -> None:
    real(programs)
    run(request(tmp_path, demo))
    before = (tmp_path / "state/venvs/v1").stat()
    with pytest.raises(HostError, match=words):
        run(request(tmp_path, demo, venv_id="v2", **change))
    assert names(tmp_path) == ["v1"]
    assert (tmp_path / "state/venvs/v1").stat() == before


def test_a_full_disk_is_called_by_its_name_f25(tmp_path: Path, demo: Path, programs: Programs) -> None:
    fake(programs, "echo 'error: failed to write: No space left on device (os error 28)'; exit 2")
    with pytest.raises(HostError, match=r"no space left on the file system of .*venvs"):
        run(request(tmp_path, demo))
    assert names(tmp_path) == []


def test_a_disk_that_cannot_hold_it_is_told_beforehand_f25(
    tmp_path: Path, demo: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(programs, "")
    monkeypatch.setattr(venv, "free_bytes", lambda _: 1_000_000)
    with pytest.raises(HostError, match=r"1 packages take about 40 MB, and .* has 1 MB free"):
        run(request(tmp_path, demo))
    assert programs.calls("uv venv") == []


def test_a_build_that_hangs_is_ended_with_all_it_started_f25(tmp_path: Path, demo: Path, programs: Programs) -> None:
    fake(programs, f"sleep 60 & echo $! > {tmp_path}/pid; wait")
    with pytest.raises(HostError, match="at its deadline"):
        run(request(tmp_path, demo, deadline=2))
    assert wait_until_gone(int((tmp_path / "pid").read_text()))
    assert names(tmp_path) == []


def test_what_a_killed_run_left_is_removed_and_never_used_f25(tmp_path: Path, demo: Path, programs: Programs) -> None:
    real(programs)
    half = tmp_path / "state/venvs/.building-v1-dead"
    (half / "bin").mkdir(parents=True)
    (half / ".sglang-fleet.json").write_text('{"venv_id": "v1"}')
    run(request(tmp_path, demo))
    assert names(tmp_path) == ["v1"]


def test_a_build_goes_on_when_nobody_listens_any_more(tmp_path: Path, demo: Path, programs: Programs) -> None:
    real(programs)

    def cut_connection(_: str) -> None:
        raise BrokenPipeError

    venv.run(request(tmp_path, demo), say=cut_connection)
    assert names(tmp_path) == ["v1"]


def test_two_builders_make_one_venv(tmp_path: Path, demo: Path, programs: Programs) -> None:
    real(programs)
    results: list[list[str]] = []
    threads = [threading.Thread(target=lambda: results.append(run(request(tmp_path, demo)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert names(tmp_path) == ["v1"]
    assert sorted(said[-1] for said in results) == ["venv v1 is complete: 1 packages", "venv v1 is there already"]


def test_progress_and_credentials(
    tmp_path: Path, demo: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "TICK", 0.1)
    fake(programs, f'env > {tmp_path}/env; echo "GET $UV_DEFAULT_INDEX"; sleep 0.4; exit 1')
    said, say = collector()
    asked = request(tmp_path, demo, index_url="http://user:poison-5@index/simple")
    with pytest.raises(HostError) as caught:
        venv.run(asked, say=say)
    assert "GET http://***@index/simple" in caught.value.what
    assert "poison-5" not in caught.value.what + "".join(said) + "".join(programs.calls())
    assert any(line.startswith("installing 1 packages, ") for line in said)
    settings = (tmp_path / "env").read_text()
    assert "UV_DEFAULT_INDEX=http://user:poison-5@index/simple" in settings
    assert "VIRTUAL_ENV" not in settings


def test_a_python_that_is_not_there(tmp_path: Path, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(tmp_path / "bin", monkeypatch, alone=True)
    for name in ("python3.9", "python3.13", "python3.13-config", "python3"):
        programs.write(name, "")
    with pytest.raises(HostError, match=r"no python3\.11; it has: python3\.9, python3\.13$"):
        run(request(tmp_path, demo, python="python3.11"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"venv_id": "../x"}, "no name for a venv"),
        ({"requirements": "demo==1.0\n"}, "pins no packages with hashes"),
        ({"requirements": ""}, "pins no packages"),
        ({"user": "no-such-user"}, "no user no-such-user"),
    ],
)
def test_what_is_not_right_is_refused(
    tmp_path: Path, demo: Path, programs: Programs, change: dict[str, Any], words: str
) -> None:
    fake(programs, "")
    with pytest.raises(HostError, match=words):
        run(request(tmp_path, demo, **change))
    assert programs.calls("uv venv") == []


def test_packages_of_a_lock_are_counted() -> None:
    lock = """\
# a comment
a==1 \\
    --hash=sha256:0
b[x,y]==2 \\
    --hash=sha256:1
c @ http://w/c.whl --hash=sha256:2
-i x
"""
    assert len(venv._PINNED.findall(lock)) == 3  # noqa: SLF001 - the one regular expression worth a look of its own
