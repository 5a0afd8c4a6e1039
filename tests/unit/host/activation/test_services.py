"""What is deployed on a host, and what each service could go back to."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host.activation import services
from sglang_fleet.host.activation.layout import UnitFiles
from sglang_fleet.host.errors import HostError
from sglang_fleet.host.machine.units import Status, SystemctlError, Systemd
from tests.unit.host.keeping.disk import Disk

UNIT = "sglang-k26.service"
TEXT = "[Service]\n[X-Sglang-Fleet]\nService=k26\nRelease={release}\n"


@pytest.fixture(name="disk")
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Two releases of k26, the second one installed and proven; its process runs."""
    disk = Disk(tmp_path / "state")
    (tmp_path / "units").mkdir()
    for number, release in enumerate(("r1", "r2")):
        manifest: dict[str, Any] = {
            "service": "k26",
            "release": release,
            "unit_name": UNIT,
            "created_at": f"day {number}",
            "by": "me",
            "port": 30001,
            "gpus": [number],
        }
        disk.write(disk.service("k26") / "releases" / release / "unit", "[Service]\n")
        manifest["files"] = {"unit": hashlib.sha256(b"[Service]\n").hexdigest()}
        replica = {"rank": number, "id": "x"}
        disk.write(disk.service("k26") / "releases" / release / "release.json", {**manifest, "replica": replica})
    disk.proven("r2")
    disk.activation("a1", "r2", "r1")
    (tmp_path / "units" / UNIT).write_text(TEXT.format(release="r2"))
    monkeypatch.setattr(services, "UnitFiles", lambda name: UnitFiles(name, folder=tmp_path / "units"))
    monkeypatch.setattr(Systemd, "show", lambda *_: Status(active="active", sub="running", main_pid=1))
    monkeypatch.setattr(services, "running_release", lambda *_: "r2")
    return disk


def asked(disk: Disk) -> dict[str, Any]:
    said: list[str] = []
    services.run({"state": str(disk.state)}, say=said.append)
    (found,) = json.loads(said[0])
    return dict(found)


def test_everything_of_a_service(disk: Disk) -> None:
    assert asked(disk) == {
        "service": "k26",
        "unit_name": UNIT,
        "installed": "r2",
        "previous": "r1",
        "gone": "",
        "running": "r2",
        "restarts": 0,
        "pending": None,
        "going_on": None,
        "replica": {"rank": 1, "id": "x"},
        "releases": [
            {
                "release": f"r{number + 1}",
                "created_at": f"day {number}",
                "by": "me",
                "proven": number == 1,
                "replica": {"rank": number, "id": "x"},
                "port": 30001,
                "gpus": [number],
            }
            for number in (0, 1)
        ],
    }


def offered(disk: Disk) -> tuple[str, str]:
    found = asked(disk)
    return found["previous"], found["gone"]


def test_f38_what_was_pruned_is_not_offered(disk: Disk) -> None:
    shutil.rmtree(disk.service("k26") / "releases" / "r1")
    assert offered(disk) == ("", "release r1 was pruned")


def test_f38_in_place_of_what_was_pruned_the_last_proven_one_is_offered_that_is_whole(disk: Disk) -> None:
    releases = disk.service("k26") / "releases"
    for name in ("r0", "r3"):
        shutil.copytree(releases / "r1", releases / name)
        manifest = json.loads((releases / name / "release.json").read_text())
        disk.write(releases / name / "release.json", {**manifest, "release": name})
    shutil.rmtree(releases / "r1")
    disk.proven("r0", "r1", "r3", "r2")
    assert offered(disk) == ("r3", "release r1 was pruned")
    disk.write(releases / "r3" / "unit", "[Service]\nUser=root\n")
    assert offered(disk) == ("r0", "release r1 was pruned")


def test_a_release_that_was_left_for_the_installed_one_is_no_way_back_from_it(disk: Disk) -> None:
    releases = disk.service("k26") / "releases"
    shutil.copytree(releases / "r1", releases / "r3")
    manifest = json.loads((releases / "r3" / "release.json").read_text())
    disk.write(releases / "r3" / "release.json", {**manifest, "release": "r3"})
    shutil.rmtree(releases / "r1")
    disk.proven("r1", "r2", "r3", "r2")
    disk.activation("a2", "r3", "r2")
    left = disk.activation("a3", "r3", None)
    disk.write(left / "result.json", {"outcome": "returned", "running_release": "r2"})
    assert offered(disk) == ("", "release r1 was pruned")


def test_a_unit_by_hand_that_is_stopped(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "units" / UNIT).write_text("[Service]\n")
    monkeypatch.setattr(Systemd, "show", lambda *_: Status())
    found = asked(disk)
    assert (found["installed"], found["previous"], found["running"], found["replica"]) == ("", "", "", None)


def test_what_cannot_be_told_is_null_and_not_nothing(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object) -> Status:
        raise SystemctlError("systemctl does not answer")

    monkeypatch.setattr(Systemd, "show", silent)
    disk.write(disk.service("k26") / "proven.json", "{")
    found = asked(disk)
    assert found["running"] is None
    assert [one["proven"] for one in found["releases"]] == [None, None]


def test_a_pending_activation_is_named_and_one_that_cannot_be_read_is_told(disk: Disk) -> None:
    note = {"activation": "a9", "mode": "activate", "release": "r2", "previous": ["r1"], "served": True}
    disk.write(disk.service("k26") / "pending.json", note)
    assert asked(disk)["pending"] == "a9"
    disk.write(disk.service("k26") / "pending.json", "{")
    with pytest.raises(HostError, match=r"pending\.json"):
        asked(disk)


def test_one_that_waits_before_it_touched_anything_is_pending_until_it_has_a_result_or_its_word(disk: Disk) -> None:
    folder = disk.service("k26") / "activations" / "a9"
    disk.write(disk.service("k26") / "lock", {"who": "me", "since": "now", "what": "activate", "activation": "a9"})
    disk.write(folder / "barriers.json", {"at": "", "reached": "", "returning": False, "deadlines": {}, "offsets": {}})
    assert asked(disk)["pending"] is None
    waits = {"at": "checked", "reached": "checked", "returning": False, "deadlines": {}, "offsets": {}}
    disk.write(folder / "barriers.json", waits)
    assert asked(disk)["pending"] == "a9"
    disk.write(folder / "abort.json", {"why": "over"})
    assert asked(disk)["pending"] is None
    (folder / "abort.json").unlink()
    disk.write(folder / "result.json", {"outcome": "refused"})
    assert asked(disk)["pending"] is None


def test_one_that_goes_on_is_told_with_what_it_was_asked_for(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    disk.write(disk.service("k26") / "lock", {"who": "me", "since": "now", "what": "activate", "activation": "a9"})
    disk.write(disk.service("k26") / "activations" / "a9" / "request.json", {"mode": "activate", "release": "r3"})
    monkeypatch.setattr(services, "lives", lambda *_, **__: False)  # it died, and left its name
    assert asked(disk)["going_on"] is None
    monkeypatch.setattr(services, "lives", lambda *_, **__: True)
    assert asked(disk)["going_on"] == {"activation": "a9", "mode": "activate", "release": "r3"}
    disk.write(disk.service("k26") / "activations" / "a9" / "result.json", {"outcome": "proven"})
    assert asked(disk)["going_on"] is None


def test_half_and_foreign_folders_are_no_releases(disk: Disk) -> None:
    disk.release("half", whole=False)
    copy = disk.service("k26") / "releases/r1.bak/release.json"
    disk.write(copy, (disk.service("k26") / "releases/r1/release.json").read_text())
    assert [one["release"] for one in asked(disk)["releases"]] == ["r1", "r2"]
