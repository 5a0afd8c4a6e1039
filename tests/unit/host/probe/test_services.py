"""What is installed and what was proven, also of services that nobody asks about any more."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable

import pytest

from sglang_fleet.host.activation.results import ASIDE
from sglang_fleet.observe import Activation, AlteredFiles, Unknown
from tests.unit.host.probe.folder_host import SERVICE, STATE, UNIT_PATH, Host


def test_a_converged_service(deployed: Host) -> None:
    service = deployed.service()
    assert service.installed_release == service.running_release == service.proven_release == "r2"
    assert (service.releases, service.manifest["release"], service.environment) == (("r1", "r2"), "r2", b"A=r2\n")
    assert service.last_activation == Activation("20261129T161600Z-0", "proven")


@pytest.mark.parametrize(("start", "anew"), [("0123456789abcdef", False), ("bb22", True), ("", None)])
def test_whether_the_server_was_started_anew_since_it_was_proven(deployed: Host, start: str, anew: bool | None) -> None:  # noqa: FBT001
    entries = [{"release": "r1", "invocation": "cc33"}, {"release": "r2", **({"invocation": start} if start else {})}]
    deployed.write(f"{SERVICE}/proven.json", json.dumps({"releases": entries}))
    assert deployed.service().started_anew is anew


def test_an_activation_that_was_killed_has_no_outcome(deployed: Host) -> None:
    deployed.write(f"{SERVICE}/activations/20261129T170000Z-2/request.json", "{}")
    assert deployed.service().last_activation == Activation("20261129T170000Z-2", None)


def test_a_result_that_a_full_disk_did_not_take_is_read_where_it_stands(deployed: Host) -> None:
    deployed.write(f"{SERVICE}/activations/20261129T170000Z-2/request.json", "{}")
    deployed.write(f"{ASIDE}/k26/20261129T170000Z-2.json", '{"outcome": "returned"}')
    assert deployed.service().last_activation == Activation("20261129T170000Z-2", "returned")


def test_the_last_activation_is_the_one_that_began_last_whatever_it_is_called(deployed: Host) -> None:
    """Two may be asked for in one second, and by controllers whose clocks differ."""
    folder = f"{SERVICE}/activations"
    for at, (name, place) in enumerate(
        [("20300101T000000Z-0", "?"), ("20261129T170000Z-f", 1), ("20261129T170000Z-0", 2)]
    ):
        deployed.write(f"{folder}/{name}/request.json", '{"by": "anna"}')
        deployed.write(f"{folder}/{name}/began.json", json.dumps({"place": place}))
        deployed.write(f"{folder}/{name}/result.json", '{"outcome": "proven"}')
        os.utime(deployed.root / folder[1:] / name / "request.json", (at, at))
    (deployed.root / folder[1:] / "20261129T170000Z-0/result.json").unlink()
    assert deployed.service().last_activation == Activation("20261129T170000Z-0", None, "anna")


@pytest.mark.parametrize("outcome", ["refused", "rejected", "nothing"])
def test_an_activation_that_touched_nothing_hides_none_that_goes_on(deployed: Host, outcome: str) -> None:
    deployed.write(f"{SERVICE}/activations/20261129T170000Z-2/began.json", '{"place": 7}')
    deployed.write(f"{SERVICE}/activations/20261129T180000Z-3/request.json", "{}")
    deployed.write(f"{SERVICE}/activations/20261129T180000Z-3/result.json", json.dumps({"outcome": outcome}))
    assert deployed.service().last_activation == Activation("20261129T170000Z-2", None)
    for name in ("20261129T170000Z-2", "20261129T161600Z-0", "20261129T161500Z-1"):
        shutil.rmtree(deployed.root / SERVICE[1:] / "activations" / name)
    assert deployed.service().last_activation == Activation("20261129T180000Z-3", outcome)


def test_an_installed_release_whose_folder_has_gone_has_no_manifest(deployed: Host) -> None:
    deployed.write(UNIT_PATH, "[X-Sglang-Fleet]\nService=k26\nRelease=gone\n")
    service = deployed.service()
    assert (service.installed_release, service.release_manifest, service.environment) == ("gone", None, None)


def test_a_damaged_manifest_is_unknown_and_one_that_was_removed_is_none(deployed: Host) -> None:
    """As SGL802 says the way out: without it the release counts as one that has to be staged, and nothing else."""
    path = deployed.write(f"{SERVICE}/releases/r2/release.json", '{"schema": 1, "rel')
    damaged = deployed.service()
    assert damaged.release_manifest == Unknown(f"{path}: not JSON")
    path.unlink()
    removed = deployed.service()
    assert (removed.release_manifest, removed.releases, removed.altered_files) == (None, ("r1",), AlteredFiles())
    assert (removed.installed_release, removed.running_release, removed.environment) == ("r2", "r2", b"A=r2\n")


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
    assert (found.installed_release, found.installed_service) == (None, None)


# -- What was put there, where something else is ----------------------------------------------------------------------

STAGED = f"{SERVICE}/releases/r2/unit"
OURS = "[Service]\nRelease=no\n[X-Sglang-Fleet]\nService=k26\nRelease=r2\n"


@pytest.mark.parametrize(
    ("installed", "staged"),
    [
        (OURS, None),
        (OURS + "# by hand\n", OURS),
        ("[Service]\nExecStart=/by/hand\n", OURS),
        (None, OURS),
        (OURS.replace("r2", "r1"), None),
    ],
    ids=["as staged", "edited", "replaced", "removed", "another release"],
)
def test_the_staged_unit_is_sent_only_where_another_is_installed(
    deployed: Host, installed: str | None, staged: str | None
) -> None:
    deployed.write(STAGED, OURS)
    if installed is None:
        (deployed.root / UNIT_PATH.lstrip("/")).unlink()
    else:
        deployed.write(UNIT_PATH, installed)
    found = deployed.service().staged_unit
    assert found == (staged.encode() if staged else None)


def test_a_unit_by_hand_in_place_of_ours_is_seen_beside_what_was_proven_last(deployed: Host) -> None:
    deployed.write(UNIT_PATH, "[Service]\nExecStart=/by/hand\n")
    found = deployed.service()
    assert (found.installed_release, found.manifest["release"], found.environment) == (None, "r2", b"A=r2\n")


@pytest.mark.parametrize("proven", ['{"releases": []}', '{"releases": [{"release": "found:f1"}]}'])
def test_where_no_release_of_ours_was_proven_last_there_is_nothing_to_compare(deployed: Host, proven: str) -> None:
    deployed.write(STAGED, OURS)
    deployed.write(f"{SERVICE}/proven.json", proven)
    deployed.write(UNIT_PATH, "[Service]\nExecStart=/by/hand\n")
    found = deployed.service()
    assert (found.staged_unit, found.release_manifest, found.environment) == (None, None, None)


def test_a_staged_unit_that_cannot_be_read_is_unknown_and_stops_nothing(deployed: Host) -> None:
    deployed.unreadable(STAGED)
    assert isinstance(deployed.service().staged_unit, Unknown)
    assert deployed.look().unknowns() == ()


FILES = {"unit": 0o644, "environment": 0o600, "secrets.yaml": 0o400, "environment.secret": 0o600, "logging.json": 0o644}


def changed(host: Host, name: str, *, text: str = "", mode: int | None = None) -> AlteredFiles | Unknown:
    """What is seen of a release's files when one of them is changed."""
    digests = {one: hashlib.sha256(f"{one}\n".encode()).hexdigest() for one in FILES}
    host.write(f"{SERVICE}/releases/r2/release.json", json.dumps({"release": "r2", "files": digests}))
    for one, usual in FILES.items():
        host.write(f"{SERVICE}/releases/r2/{one}", f"{one}\n", mode=usual)
    path = host.root / SERVICE.lstrip("/") / "releases/r2" / name
    path.chmod(0o600)
    path.write_text(text or path.read_text())
    path.chmod(FILES[name] if mode is None else mode)
    return host.service().altered_files


def test_files_as_they_were_staged_are_not_altered(deployed: Host) -> None:
    assert changed(deployed, "unit") == AlteredFiles()


@pytest.mark.parametrize("name", ["secrets.yaml", "environment.secret", "logging.json"])
def test_a_file_of_the_release_that_was_edited_is_named_and_nothing_of_it_sent(deployed: Host, name: str) -> None:
    assert changed(deployed, name, text="api-key: poison-1\n") == AlteredFiles(edited=(name,))
    assert "poison-1" not in str(deployed.look())


@pytest.mark.parametrize(
    ("name", "mode"), [("secrets.yaml", 0o444), ("environment.secret", 0o640), ("unit", 0o666), ("logging.json", 0o664)]
)
def test_f12_a_file_of_the_release_that_others_may_use_is_named(deployed: Host, name: str, mode: int) -> None:
    assert changed(deployed, name, mode=mode) == AlteredFiles(exposed=(name,))


def test_a_file_of_the_release_that_is_gone_or_a_link_counts_as_edited(deployed: Host) -> None:
    changed(deployed, "unit")
    folder = deployed.root / SERVICE.lstrip("/") / "releases/r2"
    (folder / "secrets.yaml").unlink()
    (folder / "logging.json").rename(folder / "elsewhere")
    (folder / "logging.json").symlink_to("elsewhere")
    assert deployed.service().altered_files == AlteredFiles(edited=("secrets.yaml", "logging.json"))


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
            {"unit.text", "installed_release", "installed_service", "release_manifest", "environment_file"}
            | {"altered_files"},
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
