"""Pruning: what is needed stays, whatever its age; what is left over goes, and never half of it (F38)."""

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest

from sglang_fleet.host.errors import HostError
from sglang_fleet.host.keeping import lease, prune, shelves
from sglang_fleet.host.keeping.choice import ACTIVATIONS_KEPT
from tests.unit.host.keeping.disk import RUN, Disk, seven


@pytest.fixture(name="disk")
def state_folder(tmp_path: Path) -> Disk:
    return Disk(tmp_path / "state")


# -- Releases --


def test_f38_what_is_needed_stays_and_the_newest_beside_it(disk: Disk) -> None:
    seven(disk)
    disk.activation("a1", "r5", "r2")
    pruned = disk.prune(keep=1)
    # r5 installed and last proven, r1 proven before it, r2 it goes back to, r7 staged last, r6 kept beside them.
    assert disk.releases() == {"r1", "r2", "r5", "r6", "r7"}
    assert disk.names("venvs") == {"v1", "v2", "v5", "v6", "v7"}
    assert {"release k26/r3", "release k26/r4", "venv v3", "venv v4"} <= set(pruned.removed)
    assert pruned.freed >= 10_000  # of each venv's program
    assert disk.prune(keep=1).removed == []


def test_keep_counts_beside_what_is_needed(disk: Disk) -> None:
    seven(disk)
    disk.prune(keep=5)
    assert len(disk.releases()) == 7  # r1, r5 and r7 are needed, four more stay


def test_f38_what_runs_stays_though_nothing_names_it_any_more(disk: Disk) -> None:
    seven(disk)
    disk.named.ids.add("r3")
    disk.prune()
    assert disk.releases() == {"r1", "r3", "r5", "r7"}


def test_f38_the_way_back_leads_on_from_the_release_before(disk: Disk) -> None:
    """The installed one was never proven: what it goes back to, and what was proven last, are two."""
    seven(disk)
    disk.named.releases.clear()
    disk.installed("r6")
    disk.activation("a1", "r5", "r2")
    disk.activation("a2", "r6", "r3")
    disk.prune()
    assert disk.releases() == {"r2", "r3", "r5", "r6", "r7"}


def test_f38_the_way_back_stays_after_the_release_was_started_afresh(disk: Disk) -> None:
    seven(disk)
    disk.activation("a1", "r5", "r2")
    disk.activation("a2", "r5", "r5")
    disk.prune()
    assert disk.releases() == {"r1", "r2", "r5", "r7"}


def test_f38_where_the_way_back_is_gone_the_one_that_takes_its_place_stays(disk: Disk) -> None:
    """After going back from r6 to r5: what ran before r5 was pruned long ago, and r6 is not what r5 goes back to."""
    seven(disk)
    shutil.rmtree(disk.service("k26") / "releases" / "r2")
    disk.proven("r3", "r5", "r6", "r5")
    disk.activation("a1", "r5", "r2")
    disk.activation("a2", "r6", "r5")
    disk.write(disk.activation("a3", "r6", None) / "result.json", {"outcome": "returned", "running_release": "r5"})
    disk.prune()
    assert disk.releases() == {"r3", "r5", "r6", "r7"}


def test_f38_a_pending_activation_keeps_both_its_ends(disk: Disk) -> None:
    seven(disk)
    pending = {"activation": "a9", "mode": "activate", "release": "r4", "previous": ["r3", "found:0123456789ab"]}
    disk.write(disk.service("k26") / "pending.json", pending)
    disk.found("0123456789ab", f"ExecStart={disk.state}/venvs/v6/bin/python")
    disk.found("ba9876543210")
    disk.activation("a9", "r4", "r2")
    disk.prune()
    assert disk.releases() == {"r1", "r2", "r3", "r4", "r5", "r7"}
    assert "v6" in disk.names("venvs")
    assert "0123456789ab" in disk.names("services", "k26", "found")


def test_f38_a_running_activation_keeps_what_it_needs_and_a_killed_one_only_until_another_ended(disk: Disk) -> None:
    seven(disk)
    disk.activation("a1", "r3", "r2", over=False)
    disk.prune()
    assert disk.releases() == {"r1", "r2", "r3", "r5", "r7"}
    disk.activation("a2", "r5", "r1")
    disk.prune()
    assert disk.releases() == {"r1", "r5", "r7"}


def test_f38_a_return_to_a_release_by_name_keeps_it(disk: Disk) -> None:
    seven(disk)
    disk.activation("a1", "r5", None, over=False, mode="return", to="r2")
    disk.prune()
    assert "r2" in disk.releases()


def test_f38_what_was_staged_last_stays_by_the_time_of_its_file_and_by_what_it_says(disk: Disk) -> None:
    seven(disk)
    path = disk.service("k26") / "releases/r2/release.json"
    times = path.stat().st_mtime_ns
    path.write_text(json.dumps({**json.loads(path.read_text()), "created_at": "2026-11-29T16:15:00Z"}))
    os.utime(path, ns=(times, times))
    disk.prune()
    assert disk.releases() == {"r1", "r2", "r5", "r7"}


def test_what_the_caller_wants_next_stays(disk: Disk) -> None:
    seven(disk)
    disk.prune(wanted=frozenset(["r2"]))
    assert disk.releases() == {"r1", "r2", "r5", "r7"}


def test_f38_what_was_compiled_with_a_venv_goes_with_it(disk: Disk, tmp_path: Path) -> None:
    seven(disk)
    cache, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    for place in ("k26/v1", "k26/v4", "other/v4", "k26/mine"):
        disk.write(cache / place / "triton/kernel.so", "x" * 5000)
    disk.write(elsewhere / "mine", "")
    (cache / "odd").mkdir()
    (cache / "odd" / "v4").symlink_to(elsewhere)
    pruned = disk.prune(cache=cache)
    assert {str(path.relative_to(cache)) for path in cache.glob("*/*")} == {"k26/v1", "k26/mine", "odd/v4"}
    assert {"compiled kernels k26/v4", "compiled kernels other/v4"} <= set(pruned.removed)
    assert pruned.skipped == ["compiled kernels odd/v4: there is a symbolic link in its path"]
    assert (elsewhere / "mine").exists()


def test_f31_half_a_release_goes_unless_something_names_it(disk: Disk) -> None:
    disk.release("r1")
    disk.release("half", whole=False)
    disk.release("needed", whole=False)
    disk.installed("needed")
    assert disk.prune(keep=9).removed == ["the half release k26/half"]
    assert disk.releases() == {"r1", "needed"}


def test_what_is_not_a_release_is_left_alone_with_all_that_it_names(disk: Disk) -> None:
    seven(disk)
    shutil.copytree(disk.service("k26") / "releases/r2", disk.service("k26") / "releases/r2.bak")
    disk.write(disk.service("k26") / "releases/r3/notes.txt", "mine")
    disk.write(disk.service("k26") / "notes/readme", "mine")
    disk.write(disk.state / "venvs/mine/bin/python", "")
    disk.write(disk.state / "mine", "")
    disk.write(disk.state / "services/odd name/x", "")
    disk.prune()
    assert disk.releases() == {"r1", "r2.bak", "r3", "r5", "r7"}
    assert disk.names("venvs") == {"v1", "v2", "v3", "v5", "v7", "mine"}
    assert disk.names() >= {"mine", "services"}
    assert disk.names("services") == {"k26", "odd name"}
    assert disk.names("services", "k26", "notes") == {"readme"}


# -- What services share --


def test_f38_a_venv_that_another_service_names_stays(disk: Disk) -> None:
    for name in ("shared", "other", "old"):
        disk.venv(name)
        disk.toolkit(name)
    disk.release("old", venv="old", cuda="old")
    disk.release("new", venv="shared", cuda="shared")
    disk.release("x1", service="gone", venv="other", cuda="other")
    disk.prune()
    assert disk.names("venvs") == disk.names("cuda") == {"shared", "other"}


def test_f38_a_venv_that_a_unit_by_hand_or_a_process_names_stays(disk: Disk) -> None:
    seven(disk)
    disk.toolkit("c1")
    disk.named.venvs.add("v2")
    disk.named.cuda.add("c1")
    disk.prune()
    assert disk.names("venvs") == {"v1", "v2", "v5", "v7"}
    assert disk.names("cuda") == {"c1"}


def test_a_toolkit_that_is_not_from_wheels_is_left_alone_and_notes_go_with_their_toolkit(disk: Disk) -> None:
    disk.toolkit("c1")
    disk.write(disk.state / "cuda/13.0/bin/nvcc", "")
    disk.write(disk.state / "cuda/verified-1.json", {"home": f"{disk.state}/cuda/c1/nvidia/cu13"})
    disk.write(disk.state / "cuda/verified-2.json", {"home": "/usr/local/cuda-13.0"})
    disk.release("r1")
    disk.prune()
    assert disk.names("cuda") == {"13.0", "verified-2.json"}


def test_what_dead_runs_left_goes_and_what_is_being_built_stays(disk: Disk) -> None:
    disk.release("r1")
    random = "0123456789abcdef01234567"
    for path in (
        f"venvs/.building-dead-{random}/x",
        f"venvs/.building-live-{random}/x",
        f"venvs/.pruned-{random}/x",
        f"cuda/.building-{random}/x",
        f"cuda/.verifying-{random}/x",
        f"services/k26/.pruned-{random}/x",
        f"services/k26/releases/.staging-{random}/x",
        f"services/k26/found/.writing-{random}/x",
        f".writing-{random}",
    ):
        disk.write(disk.state / path, "")
    with (disk.state / "venvs/.lock-live").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        disk.prune()
    assert disk.names("venvs") == {f".building-live-{random}"}
    assert disk.names("cuda") == set()
    assert disk.releases() == {"r1"}
    assert disk.names("services", "k26", "found") == set()
    assert not [
        name for name in disk.names() | disk.names("services", "k26") if name.startswith((".writing", ".pruned"))
    ]


def test_old_programs_and_probes_go_but_for_the_last_and_the_needed(disk: Disk) -> None:
    for number in range(6):
        disk.write(disk.state / f"host/{number:016x}.pyz", "x")
        disk.write(disk.state / f"host/{number:016x}-30b07f0.bin", "x")
        disk.write(disk.state / f"host/probe-{number:016x}-30b07f0.bin", "x")
    disk.write(disk.state / "host/program.pyz", "x")
    disk.named.programs.add("0000000000000001.pyz")
    disk.prune()
    names = disk.names("host")
    kept = {f"{number:016x}" for number in (1, 3, 4, 5)}
    assert {name for name in names if name.startswith("0")} == {
        f"{name}{end}" for name in kept for end in (".pyz", "-30b07f0.bin")
    }
    assert len([name for name in names if name.startswith("probe")]) == shelves.PROBES_KEPT
    assert "program.pyz" in names


# -- The lock --


@pytest.mark.parametrize("unlock", [True, False])
def test_the_host_is_freed_by_the_same_call_when_it_is_the_last(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, *, unlock: bool
) -> None:
    said: list[str] = []
    monkeypatch.setattr(prune, "of_this_host", lambda _: disk.named)
    prune.run({"state": str(disk.state), "run": RUN, "keep": 5, "unlock": unlock}, say=said.append)
    assert (lease.read(disk.state) is None) is unlock
    assert json.loads(said[0])["removed"] == []


def test_another_runs_lock_is_not_freed(disk: Disk) -> None:
    with pytest.raises(HostError, match="this host is locked"):
        prune.run({"state": str(disk.state), "run": "another", "keep": 5, "unlock": True}, say=print)
    assert lease.read(disk.state) is not None


# -- Records --


def test_old_activations_go_but_never_the_pending_or_the_one_that_says_the_way_back(disk: Disk) -> None:
    disk.release("r1")
    disk.release("r2")
    disk.installed("r2")
    disk.activation("way-back", "r2", "r1")
    disk.activation("pending", "r2", None)
    disk.write(disk.service("k26") / "pending.json", {"activation": "pending", "release": "r2", "previous": []})
    disk.activation("old", "r2", None)
    for number in range(ACTIVATIONS_KEPT):
        disk.activation(f"a{number:03}", "r2", None)
    disk.prune()
    left = disk.names("services", "k26", "activations")
    assert left == {"way-back", "pending", *(f"a{number:03}" for number in range(ACTIVATIONS_KEPT))}


def test_copies_of_units_stay_while_something_names_them(disk: Disk) -> None:
    disk.release("r1")
    names = [f"{number:012x}" for number in range(6)]
    for name in names:
        disk.found(name, ours=name == names[4])
    disk.activation("a1", "r1", f"found:{names[0]}")
    disk.write(disk.activation("a2", "r1", None) / "events.jsonl", json.dumps({"text": f"kept as found:{names[1]}"}))
    disk.proven(f"found:{names[2]}", "r1")
    disk.write(disk.service("k26") / "records/r1.json", {})
    disk.write(disk.service("k26") / "records/gone.json", {})
    for name in names[2:4]:
        disk.write(disk.service("k26") / f"records/found-{name}.json", {})
    disk.prune()
    # The last of each kind is what a failure may go back to, or what somebody had changed last.
    assert disk.names("services", "k26", "found") == {*names[:3], names[4], names[5]}
    assert disk.names("services", "k26", "records") == {"r1.json", f"found-{names[2]}.json"}


def test_the_program_that_an_ended_activation_kept_for_itself_goes(disk: Disk) -> None:
    disk.release("r1")
    ended, waiting = disk.activation("a1", "r1", None), disk.activation("a2", "r1", None, over=False)
    for folder in (ended, waiting):
        disk.write(folder / "program.pyz", "x")
    disk.prune()
    assert [(folder / "program.pyz").exists() for folder in (ended, waiting)] == [False, True]
