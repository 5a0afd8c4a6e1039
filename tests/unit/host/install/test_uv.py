"""The pinned uv: found on the host, or fetched and held to its sha256."""

import platform
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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
