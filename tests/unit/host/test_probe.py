"""The probe, run for real in its own interpreter, against a folder that looks like a host."""

import ast
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sglang_fleet.host import probe
from sglang_fleet.observe import Activation, HostState, Model, ServiceState, Unknown, known, parse

SOURCE = Path(probe.__file__).read_text(encoding="utf-8")
UNIT = "sglang-k26.service"
STATE = "/var/lib/sglang-fleet"
SERVICE = f"{STATE}/services/k26"
UNIT_PATH = f"/etc/systemd/system/{UNIT}"
HOME = "/usr/local/cuda-13.0"
GPU = "0, GPU-0a, NVIDIA RTX PRO 6000 Blackwell, 97887, 4, 12.0, 580.95.05"
PROPERTIES = {
    "Id": UNIT,
    "LoadState": "loaded",
    "ActiveState": "active",
    "SubState": "running",
    "Result": "success",
    "UnitFileState": "enabled",
    "MainPID": "4711",
    "NRestarts": "2",
    "InvocationID": "0123456789abcdef",
    "ActiveEnterTimestamp": "Sun 2026-11-29 16:15:00 UTC",
    "FragmentPath": UNIT_PATH,
    "NeedDaemonReload": "no",
}
NOT_FOUND = PROPERTIES | {
    "LoadState": "not-found",
    "ActiveState": "inactive",
    "SubState": "dead",
    "UnitFileState": "",
    "MainPID": "0",
    "NRestarts": "0",
    "InvocationID": "",
    "ActiveEnterTimestamp": "",
    "FragmentPath": "",
}


@dataclass
class Host:
    """A folder that looks like a host, with programs of its own first on PATH."""

    root: Path
    programs: Path
    request: dict[str, Any] = field(default_factory=dict)

    def write(self, path: str, content: str | bytes = "", *, mode: int = 0o644) -> Path:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)
        return target

    def unreadable(self, path: str) -> None:
        """Put something there that is neither absent nor readable, for root too: a link to itself."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.symlink_to(target)

    def program(self, name: str, script: str) -> None:
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def nvidia_smi(self, *, gpus: str = GPU, compute: str = "") -> None:
        self.program("nvidia-smi", f'case "$1" in *compute-apps*) printf "%s\\n" "{compute}";; *) echo "{gpus}";; esac')

    def systemctl(self, *units: dict[str, str]) -> None:
        blocks = "\n\n".join("\n".join(f"{key}={value}" for key, value in unit.items()) for unit in units)
        self.program("systemctl", f"echo called >> {self.programs}/calls\ncat <<'END'\n{blocks}\nEND")

    def process(self, pid: int, *arguments: str, unit: str = "", environment: str = "", sockets: str = "") -> None:
        self.write(f"/proc/{pid}/comm", f"{Path(arguments[0]).name[:15]}\n")
        self.write(f"/proc/{pid}/cmdline", "\0".join((*arguments, "")))
        self.write(f"/proc/{pid}/cgroup", f"0::/system.slice/{unit}\n")
        self.write(f"/proc/{pid}/environ", environment)
        descriptors = self.root / f"proc/{pid}/fd"
        descriptors.mkdir()
        for number, inode in enumerate(sockets.split()):
            (descriptors / str(number)).symlink_to(f"socket:[{inode}]")

    def run(self, **changes: Any) -> str:
        request = self.request | {"root": str(self.root)} | changes
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", SOURCE, json.dumps(request)],
            env={"PATH": str(self.programs)},
            capture_output=True,
            check=True,
            timeout=60,
        )
        assert done.stderr == b""
        assert done.stdout.count(b"\n") == 1
        return done.stdout.decode("ascii")

    def look(self, **changes: Any) -> HostState:
        return parse(self.run(**changes))

    def service(self) -> ServiceState:
        return self.look().services["k26"]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A fresh host: Debian 12, one GPU, no unit, nothing of ours."""
    host = Host(root=tmp_path / "root", programs=tmp_path / "programs")
    host.programs.mkdir()
    for name in ("cat", "sleep", "yes"):
        (host.programs / name).symlink_to(str(shutil.which(name)))
    host.write("/etc/os-release", 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n')
    host.write("/usr/lib/systemd/libsystemd-shared-252.so")
    host.write("/proc/net/tcp", "  sl  local_address\n")
    host.nvidia_smi()
    host.systemctl(NOT_FOUND)
    host.request = {
        "state": STATE,
        "services": {"k26": {"unit": UNIT, "port": 30001, "gpus": None}},
        "models": ["/models/K2.6"],
        "cuda": {"version": "13.0", "home": HOME},
        "users": ["root", "nobody-of-that-name"],
        "pythons": ["python3.11"],
    }
    return host


# -- F1: a host where nothing exists yet -----------------------------------------------------------------------------


def test_f1_a_fresh_host_is_known_to_be_empty(host: Host) -> None:
    state = host.look()
    assert state.unknowns(minor=True) == ()
    assert (known(state.os).id, known(state.os).codename) == ("debian", "bookworm")
    assert (state.systemd, state.driver, state.compute) == (252, "580.95.05", ())
    assert (state.venvs, state.programs, state.toolkit.version, state.toolkit_verified) == ((), (), None, False)
    assert state.users["nobody-of-that-name"] is None
    assert state.pythons == {"python3.11": None}
    assert state.listeners == {30001: ()}
    assert not known(state.models["/models/K2.6"]).exists
    service = state.services["k26"]
    assert service.unit is None
    assert service.installed_text is None
    assert service.describe_installed() == "not installed"
    assert (service.is_running, service.proven_release, service.last_activation) == (False, None, None)


def test_the_system_is_read_from_usr_lib_when_etc_has_no_os_release(host: Host) -> None:
    (host.root / "etc/os-release").unlink()
    host.write("/usr/lib/os-release", "ID=rhel\nVERSION_ID='9.4'\n")
    found = known(host.look().os)
    assert (found.id, found.version_id, found.codename) == ("rhel", "9.4", "")


def test_systemd_is_asked_when_its_library_does_not_tell(host: Host) -> None:
    host.write("/usr/lib/systemd/libsystemd-shared-255.4-1.so")
    host.program("systemctl", 'case "$1" in --version) echo "systemd 255 (255.4-1)";; *) exit 1;; esac')
    assert host.look().systemd == 255


# -- F8: the unit's file, byte by byte -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [b"[Unit]\r\nDescription=x\r\n", b"[Unit]\nDescription=x", b"Description=\xff\xfe\0", b"", "Käse\n".encode()],
)
def test_f8_the_unit_arrives_as_it_is(host: Host, text: bytes) -> None:
    host.write(UNIT_PATH, text, mode=0o600)
    host.systemctl(PROPERTIES)
    service = host.service()
    assert service.installed_text == text
    unit = known(service.unit)
    assert unit is not None
    assert (unit.kind, unit.mode, unit.target) == ("file", "0600", None)
    assert service.describe_installed() == "a unit written by hand"


def test_a_unit_of_a_package_is_found_where_systemd_found_it(host: Host) -> None:
    path = f"/usr/lib/systemd/system/{UNIT}"
    host.write(path, "packaged")
    host.systemctl(PROPERTIES | {"FragmentPath": path})
    assert (host.service().installed_text, host.service().fragment) == (b"packaged", path)


def test_a_unit_that_systemd_has_not_read_yet_counts(host: Host) -> None:
    host.write(UNIT_PATH, "new")
    assert host.service().installed_text == b"new"


def test_a_unit_that_is_a_dangling_link_is_there_and_unknown(host: Host) -> None:
    host.write("/etc/systemd/system/other").unlink()
    (host.root / UNIT_PATH.lstrip("/")).symlink_to("/nowhere")
    service = host.service()
    assert isinstance(service.installed_text, Unknown)
    unit = known(service.unit)
    assert unit is not None
    assert (unit.kind, unit.target) == ("symlink", "/nowhere")


def test_drop_ins_are_found_in_every_folder_an_operator_writes_to(host: Host) -> None:
    host.write(f"{UNIT_PATH}.d/10-limits.conf", "a")
    host.write(f"{UNIT_PATH}.d/README", "no drop-in")
    host.write(f"/run/systemd/system/{UNIT}.d/override.conf", b"\xff")
    host.write("/usr/lib/systemd/system/service.d/distribution.conf", "not ours to judge")
    dropins = known(host.service().dropins)
    assert [(dropin.path, dropin.text) for dropin in dropins] == [
        (f"{UNIT_PATH}.d/10-limits.conf", b"a"),
        (f"/run/systemd/system/{UNIT}.d/override.conf", b"\xff"),
    ]


# -- What systemd says -----------------------------------------------------------------------------------------------


def test_a_running_unit(host: Host) -> None:
    host.systemctl(PROPERTIES)
    host.process(4711, "python3", environment="HF_TOKEN=hf_secret\0SGLANG_FLEET_RELEASE=r1\0PATH=/bin\0")
    service = host.service()
    assert (service.active, service.sub, service.enabled, service.main_pid) == ("active", "running", "enabled", 4711)
    assert (service.restarts, service.active_since, service.needs_reload) == (2, "2026-11-29T16:15:00Z", False)
    assert (service.running_release, service.is_running) == ("r1", True)
    assert "hf_secret" not in host.run()


def test_all_units_are_asked_for_at_once(host: Host) -> None:
    host.systemctl(PROPERTIES, NOT_FOUND | {"Id": "b.service"})
    services = {"k26": {"unit": UNIT, "port": 1}, "b": {"unit": "b.service", "port": 2}}
    state = host.look(services=services)
    assert (state.services["k26"].active, state.services["b"].active) == ("active", "inactive")
    assert (host.programs / "calls").read_text() == "called\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Failed to connect to bus' >&2; exit 1", "systemctl: exit status 1: Failed to connect to bus"),
        ("echo nonsense", "systemctl: no ActiveState for sglang-k26.service"),
        ("printf 'a=1\\n\\nb=2\\n'", "systemctl: 2 answers for 1 units"),
        ("kill -9 $$", "systemctl: exit status -9: no message"),
    ],
)
def test_f7_without_systemd_the_state_is_unknown_and_the_files_are_still_read(
    host: Host, script: str, why: str
) -> None:
    host.program("systemctl", script)
    host.write(UNIT_PATH, "[Unit]\n")
    service = host.service()
    assert service.active == service.is_running == Unknown(why)
    assert isinstance(service.running_release, Unknown)
    assert service.installed_text == b"[Unit]\n"
    assert service.releases == ()


# -- What is installed, and what was proven --------------------------------------------------------------------------


@pytest.fixture
def deployed(host: Host) -> Host:
    """A host with two releases, the second one installed and proven."""
    for release in ("r1", "r2"):
        host.write(f"{SERVICE}/releases/{release}/release.json", json.dumps({"schema": 1, "release": release}))
        host.write(f"{SERVICE}/releases/{release}/environment", f"A={release}\n", mode=0o600)
    proven = [{"release": release, "proven_at": "now", "activation": "a"} for release in ("r1", "r2")]
    host.write(f"{SERVICE}/proven.json", json.dumps({"releases": proven}))
    host.write(f"{SERVICE}/activations/20261129T161500Z-1/result.json", '{"outcome": "returned"}')
    host.write(f"{SERVICE}/activations/20261129T161600Z-0/result.json", '{"outcome": "proven"}')
    host.write(UNIT_PATH, "[Service]\nRelease=no\n[X-Sglang-Fleet]\nService=k26\nRelease=r2\n")
    host.systemctl(PROPERTIES)
    host.process(4711, "python3", environment="SGLANG_FLEET_RELEASE=r2\0")
    return host


def test_a_converged_service(deployed: Host) -> None:
    service = deployed.service()
    assert service.installed_release == service.running_release == service.proven_release == "r2"
    assert (service.releases, service.manifest["release"], service.environment) == (("r1", "r2"), "r2", b"A=r2\n")
    assert service.last_activation == Activation("20261129T161600Z-0", "proven")


def test_half_built_things_are_not_listed(deployed: Host) -> None:
    deployed.write(f"{SERVICE}/releases/.staging-x/release.json", "{}")
    deployed.write(f"{SERVICE}/releases/r3/unit", "no manifest yet")
    deployed.write(f"{STATE}/venvs/.building-v1/.sglang-fleet.json", "{}")
    deployed.write(f"{STATE}/venvs/v2/bin/python")
    deployed.write(f"{STATE}/venvs/v3/.sglang-fleet.json", "{}")
    deployed.write(f"{STATE}/host/0123456789abcdef.pyz")
    state = deployed.look()
    assert state.services["k26"].releases == ("r1", "r2")
    assert (state.venvs, state.programs) == (("v3",), ("0123456789abcdef",))


def test_an_activation_that_was_killed_has_no_outcome(deployed: Host) -> None:
    deployed.write(f"{SERVICE}/activations/20261129T170000Z-2/request.json", "{}")
    assert deployed.service().last_activation == Activation("20261129T170000Z-2", None)


def test_an_installed_release_whose_folder_has_gone_has_no_manifest(deployed: Host) -> None:
    deployed.write(UNIT_PATH, "[X-Sglang-Fleet]\nService=k26\nRelease=gone\n")
    service = deployed.service()
    assert (service.installed_release, service.release_manifest, service.environment) == ("gone", None, None)


def test_the_unit_of_another_service_is_told_as_such(deployed: Host) -> None:
    deployed.write(f"{STATE}/services/old/releases/s1/release.json", '{"release": "s1"}')
    deployed.write(f"{STATE}/services/old/releases/s1/environment", "A=s1\n")
    deployed.write(UNIT_PATH, "[X-Sglang-Fleet]\nService=old\nRelease=s1\n")
    service = deployed.service()
    assert (service.installed_release, service.installed_service) == (None, "old")
    assert (service.manifest["release"], service.environment) == ("s1", b"A=s1\n")
    assert service.describe_installed() == "the unit of service old"


@pytest.mark.parametrize("service", ["", "../../etc", "a/b"])
def test_a_section_that_names_no_service_is_nobodys(deployed: Host, service: str) -> None:
    deployed.write(UNIT_PATH, f"[X-Sglang-Fleet]\nService={service}\nRelease=r2\n")
    found = deployed.service()
    assert (found.installed_release, found.installed_service, found.release_manifest) == (None, None, None)


# -- Services that the settings no longer name -----------------------------------------------------------------------

OLD = f"{STATE}/services/old"
OLD_UNIT = "/etc/systemd/system/sglang-old.service"
ENABLED = "/etc/systemd/system/multi-user.target.wants/sglang-old.service"


@pytest.fixture
def left(deployed: Host) -> Host:
    """A host with a second service, deployed, that nobody asks about."""
    deployed.write(f"{OLD}/releases/s1/release.json", '{"unit_name": "sglang-old.service"}')
    deployed.write(f"{OLD}/proven.json", '{"releases": [{"release": "s1"}, {"release": "found:f1"}]}')
    deployed.write(OLD_UNIT, "[X-Sglang-Fleet]\nService=old\nRelease=s1\n")
    deployed.write(ENABLED)
    return deployed


def test_a_service_that_nobody_asks_about_any_more_is_named(left: Host) -> None:
    assert left.look().leftovers == {"old": "sglang-old.service"}


def test_without_a_proven_release_the_newest_counts(left: Host) -> None:
    (left.root / OLD.lstrip("/") / "proven.json").unlink()
    older = left.write(f"{OLD}/releases/s2/release.json", '{"unit_name": "another.service"}')
    os.utime(older, (1, 1))
    assert left.look().leftovers == {"old": "sglang-old.service"}


def test_a_service_that_runs_and_does_not_start_with_the_host_is_named_too(left: Host) -> None:
    (left.root / ENABLED.lstrip("/")).unlink()
    left.write("/sys/fs/cgroup/system.slice/sglang-old.service/cgroup.procs")
    assert left.look().leftovers == {"old": "sglang-old.service"}


@pytest.mark.parametrize(
    "end",
    [
        lambda host: (host.root / ENABLED.lstrip("/")).unlink(),
        lambda host: (host.root / OLD_UNIT.lstrip("/")).unlink(),
        lambda host: shutil.rmtree(host.root / OLD.lstrip("/") / "releases"),
        lambda host: host.write(OLD_UNIT, "[Service]\n"),
        lambda host: host.write(OLD_UNIT, "[X-Sglang-Fleet]\nService=kimi\nRelease=r1\n"),
    ],
    ids=["disabled", "removed", "forgotten", "by hand", "renamed"],
)
def test_one_that_is_over_is_not_named(left: Host, end: Callable[[Host], object]) -> None:
    end(left)
    assert left.look().leftovers == {}


@pytest.mark.parametrize("path", [f"{OLD}/proven.json", f"{OLD}/releases/s1/release.json", OLD_UNIT])
def test_f7_what_is_left_over_may_be_unknown_and_stops_nothing(left: Host, path: str) -> None:
    left.unreadable(path)
    state = left.look()
    assert isinstance(state.leftovers, Unknown)
    assert state.unknowns() == ()


DAMAGE: dict[str, Callable[[Host, str], object]] = {
    "unreadable": Host.unreadable,
    "corrupt": lambda host, path: host.write(path, '{"releases": ['),
    "of another type": lambda host, path: host.write(path, "[]"),
    "binary": lambda host, path: host.write(path, b"\xff\0"),
    "deep": lambda host, path: host.write(path, "[" * 100_000),
    "not a number": lambda host, path: host.write(path, '{"outcome": NaN}'),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize(
    ("path", "unknown"),
    [
        (f"{SERVICE}/proven.json", "services.k26.proven"),
        (f"{SERVICE}/releases/r2/release.json", "services.k26.release_manifest"),
        (f"{SERVICE}/activations/20261129T161600Z-0/result.json", "services.k26.last_activation.outcome"),
    ],
)
def test_f7_a_damaged_file_is_unknown_and_hides_nothing_else(
    deployed: Host, damage: str, path: str, unknown: str
) -> None:
    DAMAGE[damage](deployed, path)
    state = deployed.look()
    paths = [path for path, _ in state.unknowns(minor=True)]
    assert unknown in paths
    assert state.services["k26"].active == "active"


@pytest.mark.parametrize(
    ("path", "unknown"),
    [
        (
            UNIT_PATH,
            {"unit.text", "installed_release", "installed_service", "release_manifest", "environment_file"},
        ),
        (f"{SERVICE}/releases", {"releases", "release_manifest", "environment_file"}),
        (f"{SERVICE}/releases/r2/environment", {"environment_file"}),
        ("/proc/4711/environ", {"running_release"}),
    ],
)
def test_f7_what_cannot_be_read_is_never_absent(deployed: Host, path: str, unknown: set[str]) -> None:
    target = deployed.root / path.lstrip("/")
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    deployed.unreadable(path)
    found = {name.removeprefix("services.k26.") for name, _ in deployed.look().unknowns()}
    assert found == unknown


def test_a_fifo_in_place_of_the_unit_does_not_hang_the_probe(host: Host) -> None:
    path = host.write(UNIT_PATH)
    path.unlink()
    os.mkfifo(path)
    assert isinstance(host.service().installed_text, Unknown)


def test_an_enormous_unit_is_unknown(host: Host) -> None:
    host.write(UNIT_PATH, b"#" * (probe.SMALL + 1))
    assert isinstance(host.service().installed_text, Unknown)


# -- GPUs ------------------------------------------------------------------------------------------------------------


def test_gpus_and_who_holds_them(host: Host) -> None:
    host.nvidia_smi(compute="4711, GPU-0a, 90000")
    host.process(4711, "/v/bin/python3", "-m", "sglang.launch_server", "--api-key", "sk-poison", unit="x.service")
    state = host.look()
    gpu, process = known(state.gpus)[0], known(state.compute)[0]
    assert (gpu.index, gpu.memory_total_mib, gpu.memory_used_mib, gpu.compute_cap) == (0, 97887, 4, "12.0")
    assert (process.gpu_uuid, process.used_mib) == ("GPU-0a", 90000)
    assert str(process) == "python3 -m sglang.launch_server (pid 4711, x.service)"
    assert "sk-poison" not in host.run()


def test_a_compute_process_that_has_just_gone_has_an_unknown_name(host: Host) -> None:
    host.nvidia_smi(compute="4711, GPU-0a, [N/A]")
    compute = known(host.look().compute)
    assert compute[0].pid == 4711
    assert isinstance(compute[0].command, Unknown)
    assert isinstance(compute[0].used_mib, Unknown)


def test_a_host_without_gpus_has_none(host: Host) -> None:
    host.nvidia_smi(gpus="No devices were found")
    assert (host.look().gpus, host.look().driver) == ((), None)


def test_without_nvidia_smi_the_gpus_are_unknown(host: Host) -> None:
    (host.programs / "nvidia-smi").unlink()
    state = host.look()
    assert state.gpus == state.driver == state.compute == Unknown("nvidia-smi: not found")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", "exit status 18: Failed"),
        ("echo 'GPU 0'", "unexpected answer: GPU 0"),
        ("echo '[Unknown Error], GPU-0a, x, 1, 1, 12.0, 580'", "index: '[Unknown Error]' is not a number"),
        ("printf '\\377\\376\\n'", "unexpected answer"),
        ("yes", "more than 1048576 bytes of output, killed"),
    ],
)
def test_f7_an_nvidia_smi_that_fails_is_unknown(host: Host, script: str, why: str) -> None:
    host.program("nvidia-smi", script)
    state = host.look()
    assert isinstance(state.gpus, Unknown)
    assert why in state.gpus.why
    assert state.services["k26"].unit is None


def test_f7_an_nvidia_smi_that_hangs_is_killed_with_all_it_started(host: Host) -> None:
    host.program("nvidia-smi", f"sleep 300 & echo $! > {host.programs}/pid-$$; wait")
    state = host.look(timeout=0.5)
    assert state.gpus == state.compute == Unknown("nvidia-smi: no answer in time, killed")
    started = [int(path.read_text()) for path in host.programs.glob("pid-*")]
    assert len(started) == 2
    assert not any(runs(pid) for pid in started)


def runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"  # a zombie waits for init, and does nothing


def test_an_unread_number_of_one_gpu_hides_nothing(host: Host) -> None:
    host.nvidia_smi(gpus=GPU.replace("97887", "[N/A]"))
    state = host.look()
    assert isinstance(known(state.gpus)[0].memory_total_mib, Unknown)
    assert state.unknowns() == ()


# -- Ports -----------------------------------------------------------------------------------------------------------

LINE = "   0: {address}:7531 {peer}:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1\n"


def table(*lines: str) -> str:
    return "  sl  local_address rem_address   st\n" + "".join(lines)


def test_a_taken_port_names_its_process(host: Host) -> None:
    listening = LINE.format(address="00000000", peer="00000000", state="0A", inode=77)
    connected = LINE.format(address="0100007F", peer="0100007F", state="01", inode=78)
    host.write("/proc/net/tcp", table(listening, connected))
    host.write("/proc/net/tcp6", table(listening.replace("00000000:7531", "0" * 32 + ":7531").replace("77", "79")))
    host.process(12, "python3", "train.py", "--password", "hunter2", sockets="5 78")
    host.process(13, "sglang::scheduler_TP0", sockets="77 79")
    assert [str(process) for process in known(host.look().listeners[30001])] == ["sglang::scheduler_TP0 (pid 13)"]


def test_a_taken_port_whose_process_cannot_be_seen_is_not_free(host: Host) -> None:
    host.write("/proc/net/tcp", table(LINE.format(address="00000000", peer="00000000", state="0A", inode=77)))
    found = known(host.look().listeners[30001])
    assert isinstance(found[0].pid, Unknown)


@pytest.mark.parametrize("content", ["x\nnonsense\n", None])
def test_f7_unreadable_sockets_are_unknown(host: Host, content: str | None) -> None:
    if content is None:
        host.unreadable("/proc/net/tcp")
    else:
        host.write("/proc/net/tcp", content)
    assert isinstance(host.look().listeners[30001], Unknown)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_this_machine_tells_who_listens(host: Host, family: socket.AddressFamily) -> None:
    with socket.socket(family) as server:
        server.bind(("localhost" if family == socket.AF_INET else "::1", 0))
        server.listen()
        port = server.getsockname()[1]
        state = host.look(root="", services={"k26": {"unit": UNIT, "port": port}}, cuda=None, models=[])
    assert [process.pid for process in known(state.listeners[port])] == [os.getpid()]


# -- Names of processes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["/v/bin/python3", "-m", "sglang.launch_server", "--api-key", "k"], "python3 -m sglang.launch_server"),
        (["python3.11", "-u", "-X", "dev", "-W", "k", "/opt/serve.py", "k"], "python3.11 serve.py"),
        (["python3", "-msglang.launch_server", "--api-key", "k"], "python3"),
        (["python3", "-c", "k"], "python3"),
        (["python3", "-ck"], "python3"),
        (["python3", "-", "k"], "python3"),
        (["python3", "-m", "k=k"], "python3"),
        (["python3", "-m"], "python3"),
        (["python3", "--check-hash-based-pycs", "k"], "python3"),
        (["sglang::scheduler_TP0 --api-key k"], "sglang::scheduler_TP0"),
        (["nginx", "k"], "nginx"),
        (["bad\x1b[31m"], "bad?[31m"),
    ],
)
def test_a_process_is_named_without_its_arguments(host: Host, arguments: list[str], name: str) -> None:
    host.process(9, *arguments)
    host.write("/proc/9/comm", Path(arguments[0]).name.partition(" ")[0])
    assert probe.command(str(host.root), 9) == name


@given(st.lists(st.sampled_from(["-u", "-m", "-c", "-mmodule", "-", "--api-key", "--api-key=SECRET"])))
def test_no_value_of_an_option_is_ever_named(arguments: list[str]) -> None:
    assert "SECRET" not in probe.python_program([*arguments, "--api-key", "SECRET"])


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("0::/system.slice/a.service\n", "a.service"),
        ("0::/system.slice/a.service/worker\n", "a.service"),
        ("0::/user.slice/user-0.slice/session-5.scope\n", "session-5.scope"),
        ("12:memory:/x\n1:name=systemd:/system.slice/a.service\n0::/\n", "a.service"),
        ("1:cpu:/\n0::/docker/0123\n", None),
        ("", None),
    ],
)
def test_the_unit_of_a_process(host: Host, cgroup: str, unit: str | None) -> None:
    host.write("/proc/9/cgroup", cgroup)
    assert probe.unit_of(str(host.root), 9) == unit


# -- Toolkit ---------------------------------------------------------------------------------------------------------


def verified(host: Host, *, architectures: list[str], **changes: object) -> HostState:
    compiler = host.write(f"{HOME}/bin/nvcc", "#!/bin/sh\necho 'release 13.0, V13.0.88'\n", mode=0o755)
    marker = {
        "home": HOME,
        "version": "13.0",
        "architectures": architectures,
        "nvcc_mtime_ns": compiler.stat().st_mtime_ns,
        "nvcc_size": compiler.stat().st_size,
    }
    host.write(f"{STATE}/cuda/verified-0.json", json.dumps(marker | changes))
    return host.look()


def test_a_verified_toolkit(host: Host) -> None:
    state = verified(host, architectures=["90", "120"])
    assert (state.toolkit_verified, state.toolkit.version) == (True, "13.0.88")


@pytest.mark.parametrize("changes", [{"nvcc_size": 1}, {"home": "/x"}, {"version": "12.8"}, {"nvcc_mtime_ns": 0}])
def test_a_toolkit_that_has_changed_since_is_not_verified(host: Host, changes: dict[str, object]) -> None:
    assert verified(host, architectures=["120"], **changes).toolkit_verified is False


def test_a_toolkit_is_not_verified_for_another_gpu(host: Host) -> None:
    assert verified(host, architectures=["90"]).toolkit_verified is False


def test_a_toolkit_for_unknown_gpus_is_unknown(host: Host) -> None:
    (host.programs / "nvidia-smi").unlink()
    assert isinstance(verified(host, architectures=["120"]).toolkit_verified, Unknown)


def test_the_version_file_of_a_toolkit_is_preferred(host: Host) -> None:
    host.write(f"{HOME}/version.json", '{"cuda": {"name": "CUDA SDK", "version": "13.0.2"}}')
    assert host.look().toolkit.version == "13.0.2"


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"cuda": 1}'])
def test_f7_a_damaged_version_file_is_unknown(host: Host, content: str) -> None:
    host.write(f"{HOME}/version.json", content)
    assert isinstance(host.look().toolkit.version, Unknown)


# -- Models ----------------------------------------------------------------------------------------------------------


def shard(size: int = 64, *, header: bytes | None = None) -> bytes:
    text = header or json.dumps({"__metadata__": {}, "w": {"data_offsets": [0, size], "shape": [size]}}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(size)


def model(host: Host, files: dict[str, bytes], *, index: str | None = None) -> Model | Unknown:
    named = dict.fromkeys(("a", "b", "c"), "1.safetensors") | {"d": "2.safetensors"}
    host.write("/models/K2.6/model.safetensors.index.json", index or json.dumps({"weight_map": named}))
    for name, content in files.items():
        host.write(f"/models/K2.6/{name}", content)
    return host.look().models["/models/K2.6"]


def test_a_whole_model(host: Host) -> None:
    found = known(model(host, {"1.safetensors": shard(), "2.safetensors": shard(9)}))
    assert (found.exists, found.directory, found.index, found.missing, found.wrong_size) == (True, True, True, (), ())
    assert found.bytes == len(shard()) + len(shard(9))


def test_a_missing_shard(host: Host) -> None:
    assert known(model(host, {"1.safetensors": shard()})).missing == ("2.safetensors",)


@pytest.mark.parametrize(
    "content", [b"", b"1234", shard()[:-1], shard() + b"x", b"version https://git-lfs.github.com/spec/v1\n"]
)
def test_a_shard_of_the_wrong_size(host: Host, content: bytes) -> None:
    found = known(model(host, {"1.safetensors": shard(), "2.safetensors": content}))
    assert (found.missing, found.wrong_size) == ((), ("2.safetensors",))


@pytest.mark.parametrize("header", [b"{", b"[]", b'{"w": {}}', b'{"w": {"data_offsets": ["x", "y"]}}', b'{"w": 1}'])
def test_f7_a_shard_with_a_damaged_header_is_unknown(host: Host, header: bytes) -> None:
    found = model(host, {"1.safetensors": shard(), "2.safetensors": shard(header=header)})
    assert isinstance(found, Unknown)
    assert "2.safetensors" in found.why


def test_a_header_beyond_the_limit_is_not_read(host: Host) -> None:
    path = host.write("/models/K2.6/1.safetensors", (probe.LARGE + 1).to_bytes(8, "little"))
    os.truncate(path, probe.LARGE + 100)
    assert isinstance(model(host, {"2.safetensors": shard()}), Unknown)


@pytest.mark.parametrize(
    "index", ["{", "[]", "{}", '{"weight_map": {"w": "../../etc/shadow"}}', '{"weight_map": {"w": []}}']
)
def test_f7_a_damaged_index_is_unknown(host: Host, index: str) -> None:
    assert isinstance(model(host, {}, index=index), Unknown)


def test_without_an_index_what_is_there_is_checked(host: Host) -> None:
    host.write("/models/K2.6/model.safetensors", shard()[:-1])
    found = known(host.look().models["/models/K2.6"])
    assert (found.exists, found.index, found.wrong_size) == (True, False, ("model.safetensors",))


def test_a_model_that_is_no_folder(host: Host) -> None:
    host.write("/models/K2.6", "x")
    found = known(host.look().models["/models/K2.6"])
    assert (found.exists, found.directory) == (True, False)


# -- The file itself -------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_its_json_is_json(value: object) -> None:
    assert json.loads(probe.to_json(value)) == value
    assert probe.from_json(json.dumps(value), "x") == value
    assert probe.to_json(value).isascii()


def refuse(name: str) -> None:
    raise ValueError(name)


@given(st.text())
@example("Infinity")
@example("\N{NEXT LINE}1")
@example("[1] x")
@example("")
def test_what_is_not_json_is_unreadable(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=refuse)
    except ValueError:
        with pytest.raises(probe.Unreadable):
            probe.from_json(text, "x")
    else:
        assert probe.from_json(text, "x") == expected


def test_it_is_python_3_9() -> None:
    ast.parse(SOURCE, feature_version=(3, 9))


def test_it_imports_nothing_dear(host: Host) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-X",
            "importtime",
            "-c",
            SOURCE,
            json.dumps(host.request | {"root": str(host.root)}),
        ],
        env={"PATH": str(host.programs)},
        capture_output=True,
        check=True,
        timeout=60,
        text=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & {"re", "json", "enum", "typing", "subprocess", "signal", "socket", "pathlib", "dataclasses"}


def test_it_writes_nothing(deployed: Host) -> None:
    def listing() -> list[tuple[str, int]]:
        return [(str(path), path.lstat().st_mtime_ns) for path in sorted(deployed.root.rglob("*"))]

    before = listing()
    deployed.run()
    assert listing() == before
