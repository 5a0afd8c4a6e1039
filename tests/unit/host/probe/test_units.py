"""Units: their files byte by byte, and what systemd says."""

import os

import pytest

from sglang_fleet.host.probe.basis import SMALL
from sglang_fleet.observe import Unknown, known
from tests.unit.host.probe.folder_host import NOT_FOUND, PROPERTIES, UNIT, UNIT_PATH, Host

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


def test_an_operators_drop_ins_for_several_units_are_named(host: Host) -> None:
    ours = f"{UNIT_PATH}.d/10-limits.conf", f"/run/systemd/system.control/{UNIT}.d/50-x.conf"
    shared = "/etc/systemd/system/service.d/a.conf", "/run/systemd/system/sglang-.service.d/b.conf"
    places = " ".join((*ours, *shared, "/usr/lib/systemd/system/service.d/distribution.conf"))
    host.systemctl(PROPERTIES | {"DropInPaths": places})
    assert host.service().shared_dropins == shared


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


def test_a_fifo_in_place_of_the_unit_does_not_hang_the_probe(host: Host) -> None:
    path = host.write(UNIT_PATH)
    path.unlink()
    os.mkfifo(path)
    assert isinstance(host.service().installed_text, Unknown)


def test_an_enormous_unit_is_unknown(host: Host) -> None:
    host.write(UNIT_PATH, b"#" * (SMALL + 1))
    assert isinstance(host.service().installed_text, Unknown)


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
