"""What of ours units and processes name: however indirectly, and never guessed where it cannot be read."""

import os
from pathlib import Path

import pytest

from sglang_fleet.host.keeping.mentions import Mentions, Reader, UnknownError
from sglang_fleet.host.keeping.references import References

STATE = "/var/lib/sglang-fleet"


@pytest.mark.parametrize(
    ("text", "venvs"),
    [
        (f"ExecStart={STATE}/venvs/v1/bin/python -m x", {"v1"}),
        (f"PATH=/usr/bin:{STATE}/venvs/v1/bin:{STATE}//venvs/./v2/bin", {"v1", "v2"}),
        (f'"{STATE}/venvs/v1"', {"v1"}),
        (f"The venv is {STATE}/venvs/v1.5.", {"v1.5.", "v1.5"}),
        (f"{STATE}/venvs/.building-v1-0011", set()),
        (f"{STATE}/venv/v1 {STATE}-old/venvs/v2", set()),
        ("/data/fleet/venvs/v1\0/data/fleet/services/k26/lock", {"v1"}),
    ],
)
def test_venvs_in_a_text(text: str, venvs: set[str]) -> None:
    assert Reader([STATE, "/data/fleet/"]).read(text.encode()).venvs == venvs


def test_every_kind_of_thing_in_a_text() -> None:
    text = f"{STATE}/services/k26/releases/r1/environment {STATE}/cuda/c1/nvidia/cu13 {STATE}/host/00ff.pyz probe"
    found = Reader([STATE]).read(text.encode() + b"\xff\xfe")
    assert found == Mentions(cuda={"c1"}, programs={"00ff.pyz"}, releases={("k26", "r1")})


class Host:
    """A host as a folder: units of its operators and of packages, and processes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / "state"
        for venv in ("v1", "v2"):
            (self.state / "venvs" / venv / "bin").mkdir(parents=True)
            (self.state / "venvs" / venv / "bin/python").symlink_to("/usr/bin/env")
        (root / "proc").mkdir()

    def unit(self, text: str, *, name: str = "k26.service", folder: str = "etc") -> Path:
        return self.file(f"{folder}/{name}", text)

    def file(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def process(self, pid: int, *, cmdline: str = "", environ: str = "", maps: str = "", exe: str = "") -> None:
        for name, text in (("cmdline", cmdline), ("environ", environ), ("maps", maps)):
            self.file(f"proc/{pid}/{name}", text)
        for name in ("exe", "cwd", "root"):
            (self.root / "proc" / str(pid) / name).symlink_to(exe if name == "exe" and exe else "/")

    def named(self) -> Mentions:
        references = References(Reader([str(self.state), os.path.realpath(self.state)]), proc=self.root / "proc")
        references.units([str(self.root / "etc"), str(self.root / "none")], [str(self.root / "usr")])
        references.processes()
        return references.found


@pytest.fixture(name="host")
def host_as_a_folder(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_unit_of_ours_and_its_drop_in(host: Host) -> None:
    host.unit("[Service]\n[X-Sglang-Fleet]\nService=k26\nRelease=r1\n")
    host.unit(f"[Service]\nEnvironment=PATH={host.state}/venvs/v2/bin\n", name="k26.service.d/a.conf")
    named = host.named()
    assert named.releases == {("k26", "r1")}
    assert named.venvs == {"v2"}


def test_f38_a_unit_by_hand_reaches_a_venv_through_links_and_scripts(host: Host) -> None:
    (host.root / "current").symlink_to(host.state / "venvs/v1")
    host.file("opt/inner.sh", f"#!/bin/sh\nexec {host.root}/current/bin/python -m sglang.launch_server\n")
    host.file("opt/start.sh", f'#!/bin/sh\nexec "{host.root}/opt/inner.sh" --port 1\n')
    host.unit(f"[Service]\nExecStart=-{host.root}/opt/start.sh\n")
    assert host.named().venvs == {"v1"}


def test_f38_a_unit_by_hand_reaches_a_venv_through_its_file_of_variables(host: Host) -> None:
    host.file("default/k26", f"VENV={host.state}/venvs/v2\n")
    host.unit(f"[Service]\nEnvironmentFile=-{host.root}/default/k26\nExecStart=/bin/sh -c '$VENV/bin/python'\n")
    assert host.named().venvs == {"v2"}


def test_masked_dangling_and_looping_links_name_nothing(host: Host) -> None:
    (host.root / "etc").mkdir()
    for name, target in (("a.service", "/dev/null"), ("b.service", "/nowhere"), ("c.service", "c.service")):
        (host.root / "etc" / name).symlink_to(target)
    host.unit(f"[Service]\nExecStart=/nowhere/python {host.root}/etc/c.service /proc/kmsg\n")
    assert host.named() == Mentions()


def test_a_unit_of_a_package_counts_by_its_text(host: Host) -> None:
    host.unit(f"[Service]\nExecStart={host.state}/venvs/v1/bin/python\n", folder="usr")
    assert host.named().venvs == {"v1"}


def test_f38_what_a_process_runs_on_is_named_by_its_environment_its_command_and_its_libraries(host: Host) -> None:
    (host.root / "current").symlink_to(host.state / "venvs/v1")
    host.process(1, environ="A=b\0SGLANG_FLEET_RELEASE=r7\0")
    host.process(2, cmdline=f"{host.root}/current/bin/python\0-m\0x\0")
    host.process(3, maps=f"7f00-7f01 r-xp 0 0:0 1  {host.state}/venvs/v2/lib/torch.so (deleted)\n")
    host.process(4, exe=f"{host.state}/cuda/c1/bin/nvcc")
    named = host.named()
    assert named.ids == {"r7"}
    assert named.venvs == {"v1", "v2"}
    assert named.cuda == {"c1"}


def test_a_process_that_ended_meanwhile_names_nothing(host: Host) -> None:
    (host.root / "proc/9").mkdir()
    assert host.named() == Mentions()


def test_f38_what_cannot_be_read_is_unknown_and_not_nothing(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.process(1)
    reads = os.readlink

    def refuses(path: str) -> str:
        if str(path).endswith("/1/exe"):
            raise PermissionError(13, "Permission denied")
        return reads(path)

    monkeypatch.setattr(os, "readlink", refuses)
    with pytest.raises(UnknownError, match=r"proc/1/exe cannot be read: Permission denied"):
        host.named()


def test_f38_a_folder_of_units_that_cannot_be_read_is_unknown(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.unit("[Service]\n")

    def broken(_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "scandir", broken)
    with pytest.raises(UnknownError, match="Input/output error"):
        host.named()
