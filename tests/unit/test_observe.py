"""The probe's answer, read strictly: a defect is named by its path, an unknown value stays one."""

import base64
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.observe import HostState, NotKnown, ProbeUnreadable, ServiceState, Unknown, known, parse

PROCESS = {"pid": 1, "command": "python3", "unit": None}
SERVICE: dict[str, Any] = {
    "unit": {"exists": True, "kind": "file", "target": None, "mode": "0644", "text_b64": "W1VuaXRdDQo=", "owner": 0},
    "fragment": "/etc/systemd/system/a.service",
    "dropins": [{"path": "/x.conf", "text_b64": "/w=="}],
    "load": "loaded",
    "active": "active",
    "sub": "running",
    "result": "success",
    "enabled": "enabled",
    "needs_reload": False,
    "main_pid": 7,
    "restarts": 0,
    "invocation": "i",
    "active_since": "2026-11-29T16:15:00Z",
    "running_release": "r2",
    "installed_release": "r2",
    "installed_service": "k26",
    "releases": ["r1", "r2"],
    "proven": [
        {"release": release, "proven_at": "t", "activation": "a", "invocation": "i"} for release in ("r1", "r2")
    ],
    "last_activation": {"id": "a", "outcome": "proven", "by": "anna@desk"},
    "release_manifest": {"venv_id": "v"},
    "environment_b64": "QT0xCg==",
    "staged_unit_b64": "W1VuaXRdCg==",
    "shared_dropins": ["/etc/systemd/system/service.d/x.conf"],
    "altered_files": {"edited": ["secrets.yaml"], "exposed": []},
}
ANSWER: dict[str, Any] = {
    "schema": 1,
    "euid": 0,
    "hostname": "h1",
    "machine_id": "0123456789abcdef0123456789abcdef",
    "boot_id": "01234567-89ab-cdef-0123-456789abcdef",
    "arch": "x86_64",
    "python": "3.11.2",
    "os": {"id": "debian", "version_id": "12", "codename": "bookworm"},
    "glibc": "2.36",
    "systemd": 252,
    "pythons": {"python3.11": "/usr/bin/python3.11", "python3.12": None},
    "users": {"root": {"uid": 0, "home": "/root"}, "sglang": None},
    "gpus": [
        {"index": 0, "uuid": "G", "name": "n", "memory_total_mib": 9, "memory_used_mib": 4, "compute_cap": "12.0"}
    ],
    "driver": "580.95.05",
    "compute": [PROCESS | {"gpu_uuid": "G", "used_mib": 3}],
    "iommu": ["DMA-FQ"],
    "persistenced": True,
    "interfaces": ["eth0", "lo"],
    "listeners": {"30001": [PROCESS]},
    "disk": {"state_free_bytes": 10, "tmp_free_bytes": 11},
    "toolkit": {"home": "/usr/local/cuda-13.0", "version": "13.0.2"},
    "toolkit_verified": True,
    "models": {
        "/m": {
            "exists": True,
            "directory": True,
            "index": True,
            "missing": [],
            "wrong_size": [],
            "bytes": 5,
            "config": "{}",
        }
    },
    "venvs": ["v"],
    "programs": ["p"],
    "services": {"k26": SERVICE},
    "leftovers": {"old": "sglang-old.service"},
}
OPEN = ("pythons", "users", "listeners", "models", "services", "leftovers")  # their names are the request's
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("unknown"), inner),
)
Path = tuple[str | int, ...]


def paths(value: Any = ANSWER, path: Path = ()) -> Iterator[Path]:  # noqa: ANN401 - JSON
    """Every place in the answer."""
    if path:
        yield path
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from paths(item, (*path, name))


PATHS = [path for path in paths() if "release_manifest" not in path[:-1]]


def changed(path: Path, value: object) -> str:
    """The answer with another value at a place."""
    answer = copy.deepcopy(ANSWER)
    place: Any = answer
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return json.dumps(answer)


def without(path: Path) -> str:
    """The answer without a place."""
    answer = copy.deepcopy(ANSWER)
    place: Any = answer
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    return json.dumps(answer)


def service(**changes: object) -> ServiceState:
    """The answer's service, with other values."""
    return parse(changed(("services", "k26"), SERVICE | changes)).services["k26"]


UNKNOWN = {"unknown": "EACCES"}


def test_an_answer_is_read() -> None:
    state = parse(json.dumps(ANSWER))
    assert state.unknowns(minor=True) == ()
    assert (state.hostname, state.euid, state.systemd, state.toolkit.version) == ("h1", 0, 252, "13.0.2")
    assert state.pythons == {"python3.11": "/usr/bin/python3.11", "python3.12": None}
    assert state.users["sglang"] is None
    assert str(known(state.listeners[30001])[0]) == "python3 (pid 1)"
    assert known(state.compute)[0].gpu_uuid == "G"
    assert state.known_venvs() == {"v"}
    assert state.leftovers == {"old": "sglang-old.service"}
    found = state.services["k26"]
    assert found.installed_bytes() == b"[Unit]\r\n"
    assert [dropin.text for dropin in known(found.dropins)] == [b"\xff"]
    assert (found.environment, found.manifest) == (b"A=1\n", {"venv_id": "v"})
    assert (found.proven_release, found.staged_unit) == ("r2", b"[Unit]\n")
    assert (sorted(found.known_releases()), found.describe_installed()) == (["r1", "r2"], "release r2")
    assert found.is_running is True


def test_what_a_login_prints_before_the_answer_is_passed_over() -> None:
    assert parse(f"Welcome to h1!\n\n{json.dumps(ANSWER)}\n").hostname == "h1"


@pytest.mark.parametrize("text", ["", "\n", "sh: 1: python3: not found", "[]", "1", '{"schema": 2}', "[" * 100_000])
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(ProbeUnreadable):
        parse(text)


@pytest.mark.parametrize("path", [path for path in PATHS if isinstance(path[-1], str)], ids=str)
def test_a_missing_value_is_named(path: Path) -> None:
    if len(path) > 1 and path[-2] in OPEN:
        parse(without(path))
        return
    with pytest.raises(ProbeUnreadable) as caught:
        parse(without(path))
    assert str(caught.value) == ".".join(map(str, path)) + " is missing"


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_a_value_of_another_type_is_named(path: Path) -> None:
    with pytest.raises(ProbeUnreadable) as caught:
        parse(changed(path, 1.5))
    assert ".".join(map(str, path)) in str(caught.value)


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_f7_an_unknown_value_is_kept_with_its_reason_or_refused(path: Path) -> None:
    try:
        state = parse(changed(path, UNKNOWN))
    except ProbeUnreadable:
        return
    if path[-1] not in OPEN:  # there `unknown` is a name like any other
        assert [why for _, why in state.unknowns(minor=True)] == ["EACCES"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (("gpus",), "gpus"),
        (("models", "/m"), "models./m"),
        (("listeners", "30001"), "listeners.30001"),
        (("services", "k26", "active"), "services.k26.active"),
        (("services", "k26", "unit", "text_b64"), "services.k26.unit.text"),
        (("services", "k26", "environment_b64"), "services.k26.environment_file"),
        (("services", "k26", "dropins", 0, "text_b64"), "services.k26.dropins.0.content"),
    ],
)
def test_f7_an_unknown_value_that_matters_is_listed(path: Path, name: str) -> None:
    assert parse(changed(path, UNKNOWN)).unknowns() == ((name, "EACCES"),)


@pytest.mark.parametrize(
    "path",
    [("gpus", 0, "memory_total_mib"), ("compute", 0, "command"), ("services", "k26", "restarts"), ("leftovers",)],
)
def test_an_unknown_value_that_is_only_for_the_eye_stops_nothing(path: Path) -> None:
    assert parse(changed(path, UNKNOWN)).unknowns() == ()


def test_a_service_named_like_a_minor_field_still_counts() -> None:
    state = parse(changed(("services",), {"command": SERVICE | {"active": UNKNOWN}}))
    assert state.unknowns() == (("services.command.active", "EACCES"),)


def test_f7_a_plan_cannot_take_an_unknown_value_for_an_absent_one() -> None:
    unit = SERVICE["unit"] | {"text_b64": UNKNOWN}
    for found in (service(unit=UNKNOWN), service(unit=unit)):
        assert found.installed_text == Unknown("EACCES")
        with pytest.raises(NotKnown, match="EACCES"):
            found.installed_bytes()
    found = service(environment_b64=UNKNOWN, release_manifest=UNKNOWN, proven=UNKNOWN)
    assert found.proven_release == Unknown("EACCES")
    for ask in (lambda: found.environment, lambda: found.manifest):
        with pytest.raises(NotKnown):
            ask()
    assert service(unit=UNKNOWN).describe_installed() == "unknown"


def test_absent_things_are_none() -> None:
    found = service(
        unit={"exists": False},
        installed_release=None,
        installed_service=None,
        release_manifest=None,
        environment_b64=None,
        proven=[],
    )
    assert (found.unit, found.installed_bytes(), found.environment, found.proven_release) == (None, None, None, None)
    assert dict(found.manifest) == {}
    assert found.describe_installed() == "not installed"
    by_hand = service(installed_release=None, installed_service=None)
    assert by_hand.describe_installed() == "a unit written by hand"
    assert service(installed_release=None).describe_installed() == "the unit of service k26"


@pytest.mark.parametrize(
    ("active", "main_pid", "expected"),
    [
        ("active", 7, True),
        ("activating", 7, True),
        ("failed", 0, False),
        ("activating", 0, False),
        ("inactive", 0, False),
    ],
)
def test_running_means_a_live_main_process(active: str, main_pid: int, *, expected: bool) -> None:
    assert service(active=active, main_pid=main_pid).is_running is expected


def test_whether_it_runs_may_be_unknown() -> None:
    assert service(active=UNKNOWN).is_running == Unknown("EACCES")
    assert service(main_pid=UNKNOWN).is_running == Unknown("EACCES")


def test_a_process_that_cannot_be_seen_is_told_as_such() -> None:
    nobody = dict.fromkeys(("pid", "command", "unit"), UNKNOWN)
    found = known(parse(changed(("listeners", "30001"), [nobody])).listeners[30001])
    assert str(found[0]) == "an unknown process (EACCES)"


@pytest.mark.parametrize("port", ["x", "", "-1", "999999", "1.5"])
def test_a_name_that_is_no_port_is_refused(port: str) -> None:
    with pytest.raises(ProbeUnreadable, match="not a port"):
        parse(changed(("listeners",), {port: []}))


@pytest.mark.parametrize("text", ["W1VuaXRd*", "W", "é", "\ud800"])
def test_what_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(ProbeUnreadable, match="environment_b64"):
        service(environment_b64=text)


@given(st.binary())
def test_bytes_arrive_as_they_are(content: bytes) -> None:
    assert service(environment_b64=base64.b64encode(content).decode()).environment == content


def read(text: str) -> HostState | None:
    """What the parser makes of a text; nothing but ProbeUnreadable may be raised, and its text is printable."""
    try:
        return parse(text)
    except ProbeUnreadable as error:
        str(error).encode()
        return None


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    read(text)


@given(JSON)
def test_any_json_is_read_or_refused(value: object) -> None:
    read(json.dumps(value))


@given(st.sampled_from(PATHS), JSON)
def test_any_value_at_any_place_is_read_or_refused(path: Path, value: object) -> None:
    state = read(changed(path, value))
    if state is not None:
        repr(state).encode()
        state.unknowns(minor=True)
