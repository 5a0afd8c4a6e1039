"""The machine."""

import platform

import pytest

from sglang_fleet.observe import Unknown, known
from tests.unit.host.probe.folder_host import BOOT_ID, MACHINE_ID, Host


def test_the_system_is_read_from_usr_lib_when_etc_has_no_os_release(host: Host) -> None:
    (host.root / "etc/os-release").unlink()
    host.write("/usr/lib/os-release", "ID=rhel\nVERSION_ID='9.4'\n")
    found = known(host.look().os)
    assert (found.id, found.version_id, found.codename) == ("rhel", "9.4", "")


def test_systemd_is_asked_when_its_library_does_not_tell(host: Host) -> None:
    host.write("/usr/lib/systemd/libsystemd-shared-255.4-1.so")
    host.program("systemctl", 'case "$1" in --version) echo "systemd 255 (255.4-1)";; *) exit 1;; esac')
    assert host.look().systemd == 255


def test_glibc_is_the_one_that_the_probe_itself_runs_with(host: Host) -> None:
    assert host.look().glibc == platform.libc_ver()[1]


def test_network_interfaces(host: Host) -> None:
    for name in ("lo", "ens3f0"):
        host.write(f"/sys/class/net/{name}/address")
    assert host.look().interfaces == ("ens3f0", "lo")


def test_nvidia_persistenced_runs_when_its_socket_is_there(host: Host) -> None:
    assert host.look().persistenced is False
    host.write("/run/nvidia-persistenced/socket")
    assert host.look().persistenced is True


def test_the_ids_of_the_machine_and_of_its_boot(host: Host) -> None:
    found = host.look()
    assert (found.machine_id, found.boot_id) == (MACHINE_ID, BOOT_ID)


@pytest.mark.parametrize("content", ["", "uninitialized\n", "0123\n", f"{'x' * 32}\n", b"\xff" * 32])
def test_what_is_no_id_is_not_known(host: Host, content: str | bytes) -> None:
    host.write("/etc/machine-id", content)
    found = host.look()
    assert found.machine_id == Unknown(f"{host.root}/etc/machine-id: not an id")
    assert found.unknowns() == ()


def test_ids_that_are_not_there_are_not_known(host: Host) -> None:
    (host.root / "etc/machine-id").unlink()
    (host.root / "proc/sys/kernel/random/boot_id").unlink()
    found = host.look()
    assert isinstance(found.machine_id, Unknown)
    assert isinstance(found.boot_id, Unknown)
    assert found.unknowns() == ()
