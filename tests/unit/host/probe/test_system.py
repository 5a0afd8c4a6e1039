"""The machine."""

import platform

from sglang_fleet.observe import known
from tests.unit.host.probe.folder_host import Host


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
