"""The pinned uv: found on the host, or fetched and held to its sha256."""

import os
import platform
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.children import Finished
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.install import uv
from sglang_fleet.host.install.package_source import Source
from tests.unit.host.stand_ins import Programs, Site, collector, sha256, site

ARCHITECTURE = platform.machine()
NAME = f"uv-9.9.9-py3-none-manylinux_2_17_{ARCHITECTURE}.manylinux2014_{ARCHITECTURE}.whl"


@pytest.fixture(name="web")
def serve() -> Iterator[Site]:
    with site() as shown:
        yield shown


@pytest.fixture(name="programs", autouse=True)
def no_uv_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path / "bin", monkeypatch)


def make_wheel(folder: Path, version: str = "9.9.9", program: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / NAME
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"uv-{version}.data/scripts/uv", program or f"#!/bin/sh\necho 'uv {version} (x)'\n")
    return path


def ensure(tmp_path: Path, source: Source, digest: str = "", **other: Any) -> tuple[str, list[str]]:
    said, say = collector()
    pin = {"version": "9.9.9", "sha256": {ARCHITECTURE: digest} if digest else {}}
    path = uv.ensure(pin, state=str(tmp_path / "state"), source=source, until=time.monotonic() + 30, say=say, **other)
    return path, said


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("uv-1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("uv-1.0-py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl", True),
        ("uv-1.0-py3-none-musllinux_1_1_x86_64.whl", False),
        ("uv-1.0-py3-none-manylinux_2_17_aarch64.whl", False),
        ("uv-1.0.1-py3-none-manylinux_2_17_x86_64.whl", False),
        ("uv-1.0-py3-none-win_amd64.whl", False),
        ("uv-1.0.tar.gz", False),
        ("uv_build-1.0-py3-none-manylinux_2_17_x86_64.whl", False),
    ],
)
def test_which_wheels_fit(name: str, *, fits: bool) -> None:
    assert uv.fits(name, "1.0", "x86_64") is fits


def test_it_is_fetched_from_an_index_checked_and_kept(tmp_path: Path, web: Site, programs: Programs) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    page = f'<a href="/f/{NAME.replace("manylinux", "musllinux")}"></a><a href="/f/{NAME}#sha256={sha256(wheel)}"></a>'
    web.pages["/simple/uv/"] = ("text/html", page.encode())
    web.pages[f"/f/{NAME}"] = ("application/zip", wheel.read_bytes())
    source = Source(f"{web.url}/simple", ())
    path, said = ensure(tmp_path, source, sha256(wheel))
    assert path == str(tmp_path / "state/uv/9.9.9/uv")
    assert said == ["fetching uv 9.9.9"]
    asked = len(web.asked)
    assert ensure(tmp_path, source, sha256(wheel)) == (path, [])
    assert len(web.asked) == asked
    assert programs.calls() == []


@pytest.mark.parametrize("told", [True, False])
def test_of_several_that_fit_the_pinned_one_is_taken(tmp_path: Path, web: Site, *, told: bool) -> None:
    """0.13.9 has two for aarch64, for an older and a newer glibc."""
    wheel = make_wheel(tmp_path / "wheels")
    other = NAME.replace("2_17", "2_28")
    fragments = (f"#sha256={'0' * 64}", f"#sha256={sha256(wheel)}") if told else ("", "")
    page = f'<a href="/f/{other}{fragments[0]}"></a><a href="/f/{NAME}{fragments[1]}"></a>'
    web.pages["/simple/uv/"] = ("text/html", page.encode())
    web.pages[f"/f/{NAME}"] = ("application/zip", wheel.read_bytes())
    web.pages[f"/f/{other}"] = ("application/zip", b"another")
    ensure(tmp_path, Source(f"{web.url}/simple", ()), sha256(wheel))


def test_it_is_taken_from_a_folder(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    assert ensure(tmp_path, Source(None, (str(wheel.parent),)), sha256(wheel))[0].endswith("/uv/9.9.9/uv")


def test_one_of_the_host_at_the_exact_version_will_do(tmp_path: Path, programs: Programs) -> None:
    programs.write("uv", "echo 'uv 9.9.9 (abc)'")
    assert ensure(tmp_path, Source(None, ()))[0] == str(programs.folder / "uv")


@pytest.mark.parametrize("script", ["echo 'uv 9.9.10'", "echo 9.9.9; exit 1", "echo"])
def test_one_of_another_version_will_not(tmp_path: Path, programs: Programs, script: str) -> None:
    programs.write("uv", script)
    wheel = make_wheel(tmp_path / "wheels")
    with pytest.raises(HostError, match="names no package index") as caught:
        ensure(tmp_path, Source(None, ()), sha256(wheel))
    assert "sglang.index_url" in caught.value.fix


def test_one_that_was_cut_short_is_replaced(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    broken = tmp_path / "state/uv/9.9.9/uv"
    broken.parent.mkdir(parents=True)
    broken.write_text("")
    broken.chmod(0o755)
    (tmp_path / "state/uv/.fetching-dead").mkdir()
    ensure(tmp_path, Source(None, (str(wheel.parent),)), sha256(wheel))
    assert sorted(path.name for path in (tmp_path / "state/uv").iterdir()) == [".lock", "9.9.9"]


def test_a_file_that_is_not_the_pinned_one_is_never_run(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", program=f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    with pytest.raises(HostError, match="not the pinned file"):
        ensure(tmp_path, Source(None, (str(wheel.parent),)), "0" * 64)
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "state/uv/9.9.9").exists()


def test_an_index_without_it(tmp_path: Path, web: Site) -> None:
    web.pages["/simple/uv/"] = ("text/html", b"")
    place = web.url.replace("://", "://user:poison-4@") + "/simple"
    with pytest.raises(HostError, match="no wheel of uv") as caught:
        ensure(tmp_path, Source(place, ()), "0" * 64)
    assert "poison-4" not in caught.value.what


def test_an_architecture_without_a_pin(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="no sha256 of uv"):
        ensure(tmp_path, Source("http://i/", ()))


def test_a_wheel_with_no_program(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", version="1.0")
    with pytest.raises(HostError, match="holds no program"):
        ensure(tmp_path, Source(None, (str(wheel.parent),)), sha256(wheel))


def test_one_that_does_not_run_here(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", program="#!/bin/sh\nexit 1\n")
    with pytest.raises(HostError, match="does not run on this host"):
        ensure(tmp_path, Source(None, (str(wheel.parent),)), sha256(wheel))


def test_addresses_stand_in_its_environment_and_nothing_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_INDEX", "http://theirs/")
    settings = uv.environment("/s", Source("http://i/", ("/w", "/v")))
    assert settings["UV_DEFAULT_INDEX"] == "http://i/"
    assert settings["UV_FIND_LINKS"] == "/w,/v"
    assert settings["UV_CACHE_DIR"] == "/s/uv/cache"
    assert "UV_INDEX" not in settings
    assert "UV_NO_CONFIG" not in uv.environment("/s", Source(None, ()))


def test_folders_alone_mean_no_network() -> None:
    assert uv.options(Source(None, ("/w",))) == ["--no-index"]
    assert uv.options(Source("http://i/", ("/w",))) == []
    assert uv.options(Source(None, ())) == []


UNSATISFIABLE = (
    "Because foo-bar was not found in the provided package locations and you require foo-bar==1.0, we can conclude "
    "that your requirements are unsatisfiable."
)
NOT_FOUND = (
    "Using Python 3.11.2 environment at: /var/lib/x",
    "error: No solution found when resolving dependencies",
    f"  cause: {UNSATISFIABLE}",
)
WHEEL = "`demo @ file:///srv/wheels/demo-1.0-py3-none-any.whl`"
MISMATCH = (
    "Using Python 3.11.2 environment at: /var/lib/x",
    "Resolved 207 packages in 1.20s",
    f"error: Failed to read {WHEEL}",
    "  cause: Hash mismatch for `demo==1.0`",
    "",
    "Expected:",
    "  sha256:00",
)


def failed(*lines: str, source: Source | None = None) -> HostError:
    with pytest.raises(HostError) as caught:
        uv.check(
            "uv pip install", Finished(1, lines, timed_out=False), folder="/srv", source=source or Source(None, ())
        )
    return caught.value


def test_its_reason_stands_whole_in_the_headline_and_useless_lines_go() -> None:
    told = failed(*NOT_FOUND)
    assert told.what == (
        f"uv pip install exited with status 1: No solution found when resolving dependencies: {UNSATISFIABLE}"
    )
    assert "above" not in told.fix


def test_what_it_says_besides_stands_below() -> None:
    assert failed(*MISMATCH).what.splitlines() == [
        f"uv pip install exited with status 1: Failed to read {WHEEL}: Hash mismatch for `demo==1.0`",
        "    Expected:",
        "      sha256:00",
    ]


def test_without_an_error_line_its_last_lines_are_shown() -> None:
    assert failed("Using Python 3.11.2 environment at: /x", "killed").what.splitlines()[1:] == ["    killed"]


def test_at_a_deadline_what_it_was_at_is_shown() -> None:
    lines = ("Using Python 3.11.2 environment at: /x", "Downloading torch (858.1MiB)")
    with pytest.raises(HostError) as caught:
        uv.check("uv pip install", Finished(-15, lines, timed_out=True), folder="/srv", source=Source(None, ()))
    assert caught.value.what.splitlines()[1:] == ["    Downloading torch (858.1MiB)"]


def test_no_credentials_stand_in_the_headline() -> None:
    source = Source("http://user:poison-6@index/simple", ())
    assert "poison" not in failed("error: no poison-6", "  cause: http://u:poison-7@index/x", source=source).what


def test_of_a_full_disk_no_number_is_told_that_was_read_after_the_files_went() -> None:
    told = failed("error: Failed to write", "  cause: No space left on device (os error 28)")
    assert told.what == "no space left on the file system of /srv"
    assert "df -h /srv" in told.fix


def noexec(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have everything below the folder say that it lies on a file system that no program may be run from."""
    really = os.statvfs

    def told(place: str) -> os.statvfs_result:
        found = list(really(place))
        found[8] |= os.ST_NOEXEC
        return os.statvfs_result(found) if str(place).startswith(str(tmp_path)) else really(place)

    monkeypatch.setattr(os, "statvfs", told)


def test_a_file_system_that_runs_nothing_is_called_by_its_name_and_nothing_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path / "wheels")
    kept, _ = ensure(tmp_path, Source(None, (str(wheel.parent),)), sha256(wheel))
    before = Path(kept).stat()
    noexec(monkeypatch, tmp_path)
    with pytest.raises(HostError, match="is mounted noexec") as caught:
        ensure(tmp_path, Source(None, (str(wheel.parent),)), sha256(wheel))
    assert "findmnt" in caught.value.fix
    assert Path(kept).stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("#!/bin/sh\necho 'no such machine'\nexit 1\n", "it exited with status 1: no such machine"),
        ("#!/bin/sh\nkill -9 $$\n", "it was ended by signal 9"),
        ("#!/no/such/interpreter\n", "No such file or directory"),
        ("#!/bin/sh\necho 'uv 1.0'\n", "it says that it is uv 1.0"),
        ("#!/bin/sh\necho hello\n", "it says `hello` of its version"),
        ("#!/bin/sh\n", "it says nothing of its version"),
    ],
)
def test_why_one_does_not_run_here_is_told(tmp_path: Path, program: str, why: str) -> None:
    wheel = make_wheel(tmp_path / "wheels", program=program)
    with pytest.raises(HostError, match=r"^uv 9\.9\.9 does not run on this host \(.*/uv/9\.9\.9/uv\)") as caught:
        ensure(tmp_path, Source(None, (str(wheel.parent),)), sha256(wheel))
    assert caught.value.what.endswith(why)
    assert caught.value.fix


def test_of_one_that_may_not_be_run_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a security module that forbids it: `access` sees nothing of that."""
    wheel = make_wheel(tmp_path / "wheels")

    def forbidden(arguments: list[str], **_: object) -> Finished:
        raise HostError(f"cannot start {arguments[0]}: Permission denied")

    monkeypatch.setattr(uv, "run_child", forbidden)
    with pytest.raises(HostError, match=r"does not run on this host .*: Permission denied"):
        ensure(tmp_path, Source(None, (str(wheel.parent),)), sha256(wheel))
