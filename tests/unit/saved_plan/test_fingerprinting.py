"""A fingerprint changes with what a plan hangs on, with nothing else, and helps nobody to guess a secret."""

import hashlib
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglang_fleet.observe import (
    Activation,
    AlteredFiles,
    ComputeProcess,
    Disk,
    DropIn,
    Gpu,
    HostState,
    Model,
    OperatingSystem,
    Process,
    Proven,
    ServiceState,
    Toolkit,
    UnitFile,
    Unknown,
    User,
)
from sglang_fleet.saved_plan import fingerprint
from tests.factories import converged, host_state, release

WANTED = release()
UNIT = UnitFile("file", None, "0644", WANTED.text("unit").encode())
MODEL = Model(
    exists=True, directory=True, index=True, missing=(), wrong_size=(), bytes=5, config='{"architectures": []}'
)
PROCESS = Process(pid=7, command="nginx", unit=None)
EIO = Unknown("EIO")


def state(*, of_service: dict[str, Any] | None = None, **changes: Any) -> HostState:
    service = replace(converged(WANTED), **(of_service or {}))
    return replace(host_state({"k26": service}, models={"/m": MODEL}), **changes)


def prints(found: HostState, salt: str = "a") -> dict[str, str]:
    return fingerprint(found, releases=[WANTED], salt=salt)


def gpus(**changes: Any) -> tuple[Gpu, ...]:
    found = host_state({}).gpus
    assert not isinstance(found, Unknown)
    return (replace(found[0], **changes), *found[1:])


def manifest(**changes: Any) -> dict[str, Any]:
    return {**converged(WANTED).manifest, **changes}


# Field → a change of it, and what is then said to have changed; None: nothing hangs on it, so that nothing is.
HOST: dict[str, list[tuple[Any, str | None]]] = {
    "euid": [(1000, "the login")],
    "hostname": [("h9", "the machine")],
    "machine_id": [("0123456789abcdef0123456789abcdef", None)],  # asked for anew by every run
    "boot_id": [("01234567-89ab-cdef-0123-456789abcdef", None)],  # likewise; a reboot changes nothing of a plan
    "arch": [("aarch64", "the machine")],
    "python": [("3.13.1", None)],  # the rules ask again
    "os": [(OperatingSystem("debian", "13", "trixie"), "the machine"), (EIO, "the machine")],
    "glibc": [("2.41", None)],  # the rules ask again
    "systemd": [(257, None)],  # the rules ask again
    "pythons": [({"python3": None}, "the Python interpreters")],
    "users": [({"root": None}, "the accounts"), ({"root": User(0, "/elsewhere")}, "the accounts")],
    "gpus": [
        (gpus(uuid="GPU-x"), "the GPUs"),
        (gpus(compute_cap="9.0"), "the GPUs"),
        (gpus()[1:], "the GPUs"),
        (EIO, "the GPUs"),
        (gpus(memory_used_mib=90000, memory_total_mib=EIO), None),
    ],
    "driver": [("590.1", "the driver"), (None, "the driver")],
    "compute": [((ComputeProcess(7, "x", None, "GPU-0", 4),), None)],  # the rules ask again
    "iommu": [(("DMA",), None)],
    "persistenced": [(False, None)],
    "interfaces": [(("lo",), None)],
    "listeners": [({30001: (PROCESS,)}, None)],  # the rules ask again
    "disk": [(Disk(1, 2), None)],
    "toolkit": [(Toolkit("/usr/local/cuda-13.0", "13.1.0"), "the CUDA toolkit")],
    "toolkit_verified": [(False, "whether the CUDA toolkit was verified")],
    "models": [
        ({"/m": replace(MODEL, missing=("a",))}, "the model /m"),
        ({"/m": replace(MODEL, bytes=6)}, "the model /m"),
        ({"/m": EIO}, "the model /m"),
        ({"/m": replace(MODEL, config="{}")}, None),  # the rules read it again
    ],
    "venvs": [((), "the venvs"), (("venv1", "another"), None)],
    "programs": [(("0123",), None)],
    "leftovers": [({"old": "old.service"}, None)],
}
SERVICE: dict[str, list[tuple[Any, str | None]]] = {
    "unit": [
        (replace(UNIT, text=b"edited"), "the unit of k26"),
        (replace(UNIT, kind="symlink", target="/x"), "the unit of k26"),
        (replace(UNIT, mode="0666"), "the mode of the unit of k26"),
        (replace(UNIT, owner=1000), "the mode of the unit of k26"),
    ],
    "fragment": [("/run/systemd/system/sglang-k26.service", "the folder of the unit of k26"), ("", None)],
    "dropins": [((DropIn("/x.conf", b"[Service]\n"),), "the drop-ins of k26")],
    "shared_dropins": [(("/etc/systemd/system/service.d/x.conf",), None)],
    "load": [("masked", None)],
    "active": [("failed", "the server of k26"), ("activating", None)],
    "sub": [("start-post", None)],
    "result": [("exit-code", None)],
    "enabled": [("disabled", "the start of k26 with the host")],
    "needs_reload": [(True, "systemd's need to read the unit of k26 again")],
    "main_pid": [(0, None), (77, None)],
    "restarts": [(1000, None)],
    "invocation": [("another", None)],
    "active_since": [("2026-12-01T00:00:00Z", None)],
    "running_release": [("older", "the release that runs as k26")],
    "installed_release": [("older", "the installed release of k26")],
    "installed_service": [(None, "the installed release of k26")],
    "releases": [((), "the releases of k26 on the host"), ((WANTED.id, "x"), "the releases of k26 on the host")],
    "proven": [
        ((), "the last proof of k26"),
        ((Proven("older", "t", "a0"), Proven(WANTED.id, "2027", "a1")), None),
        ((Proven(WANTED.id, "t", "a2"),), "the last proof of k26"),
    ],
    "last_activation": [
        (Activation("a9", None), "the activation of k26 that has not ended"),
        (Activation("a9", "proven"), None),
    ],
    "release_manifest": [
        (manifest(gate={}), "the installed release of k26"),
        (manifest(secrets={"api_key": "x"}), "the installed release of k26"),
        (manifest(created_at="later", by="somebody else"), None),
    ],
    "environment_file": [(b"A=1\n", "the environment of k26"), (None, "the environment of k26")],
    "staged_unit": [(b"edited", "the staged unit of k26")],
    "altered_files": [
        (AlteredFiles(edited=("secrets.yaml",)), "the files of the installed release of k26"),
        (AlteredFiles(exposed=("secrets.yaml",)), "the files of the installed release of k26"),
        (EIO, "the files of the installed release of k26"),
    ],
}
CASES = [(False, name, *case) for name, cases in HOST.items() for case in cases]
CASES += [(True, name, *case) for name, cases in SERVICE.items() for case in cases]


def test_every_field_has_been_decided_about() -> None:
    assert {field.name for field in fields(HostState)} == HOST.keys() | {"services"}
    assert {field.name for field in fields(ServiceState)} == SERVICE.keys()


@pytest.mark.parametrize(("of_service", "field", "value", "told"), CASES)
def test_what_a_plan_hangs_on_changes_one_aspect_and_nothing_else_does(
    of_service: bool,  # noqa: FBT001 - a parameter
    field: str,
    value: object,
    told: str | None,
) -> None:
    changes: dict[str, Any] = {"of_service": {field: value}} if of_service else {field: value}
    other = state(**changes)
    before, after = prints(state()), prints(other)
    assert [aspect for aspect in before if before[aspect] != after[aspect]] == ([told] if told else [])


def harmless(cases: dict[str, list[tuple[Any, str | None]]]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of the changes that nothing hangs on, together."""
    values = {name: [value for value, told in found if not told] for name, found in cases.items()}
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(v) for name, v in values.items() if v})


@given(harmless(HOST), harmless(SERVICE))
@settings(max_examples=50)
def test_what_moves_by_itself_changes_nothing_in_any_combination(host: dict[str, Any], service: dict[str, Any]) -> None:
    assert prints(state(of_service=service, **host)) == prints(state())


def test_a_crash_loop_looks_the_same_at_each_of_its_moments() -> None:
    running, waiting = (
        {"active": "active", "running_release": WANTED.id},
        {"active": "activating", "running_release": None},
    )
    before, after = prints(state(of_service=running)), prints(state(of_service=waiting))
    assert [aspect for aspect in before if aspect in after and before[aspect] != after[aspect]] == []


SECRET = b"hunter2"
HAND_WRITTEN = b"[Service]\nExecStart=/x --api-key " + SECRET + b"\n"


@pytest.mark.parametrize(
    "service",
    [
        {"unit": replace(UNIT, text=HAND_WRITTEN), "release_manifest": None},
        {"dropins": (DropIn("/x.conf", HAND_WRITTEN),)},
        {"environment_file": HAND_WRITTEN},
        {"staged_unit": HAND_WRITTEN},
    ],
)
def test_no_text_of_another_hand_counts_by_a_fast_hash(service: dict[str, Any]) -> None:
    kept = " ".join(prints(state(of_service=service)).values())
    guess = hashlib.sha256(HAND_WRITTEN).hexdigest()
    salted = [f'a\n"{guess}"', f"a\n{HAND_WRITTEN.decode()}", f"a{HAND_WRITTEN.decode()}"]
    guesses = [guess, *(hashlib.sha256(text.encode()).hexdigest() for text in salted)]
    assert SECRET.decode() not in kept
    assert not [one for one in guesses if one[:16] in kept]


def test_digests_of_secret_files_are_not_in_it() -> None:
    files = {**manifest()["files"], "environment.secret": hashlib.sha256(SECRET).hexdigest()}
    assert prints(state(of_service={"release_manifest": manifest(files=files)})) == prints(state())


def test_two_plans_tell_nothing_together() -> None:
    found = state(of_service={"dropins": (DropIn("/x.conf", HAND_WRITTEN),)})
    one, other = prints(found, "a"), prints(found, "b")
    assert not {value for value in one.values() if value.startswith("#")} & set(other.values())


def test_without_its_manifest_a_text_may_be_anybodys() -> None:
    before, after = prints(state()), prints(state(of_service={"release_manifest": None}))
    changed = {aspect for aspect in before if before[aspect] != after[aspect]}
    assert changed == {"the installed release of k26", "the unit of k26", "the environment of k26"}
