"""A host's system."""

from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.host.activation import room
from sglang_fleet.host.install import venv
from sglang_fleet.lint.rules.machine import ACTIVATION_BYTES, PACKAGE_BYTES
from sglang_fleet.observe import Disk, Toolkit, Unknown
from tests.factories import service
from tests.unit.lint.host_views import host_view, messages

GB = 10**9
HOME = "/usr/local/cuda-13.0"


def disk(state: Any, tmp: Any = 10**12) -> Disk:  # noqa: ANN401 - as probed
    return Disk(state_free_bytes=state, tmp_free_bytes=tmp)


@pytest.mark.parametrize(
    ("sglang", "python", "found"),
    [
        ({"python": "python3"}, "3.10.12", "python3 is Python 3.10; sglang 0.5.23 needs 3.11"),
        ({"python": "python3.10"}, "3.12.1", "python3.10 is Python 3.10; sglang 0.5.23 needs 3.11"),
        ({"python": "/opt/bin/python3.9"}, "3.12.1", "/opt/bin/python3.9 is Python 3.9; sglang 0.5.23 needs 3.11"),
        ({"python": "python3"}, "3.11.2", None),
        ({"python": "/opt/python"}, "3.9.1", None),  # the probe runs with another one
        ({"python": "python3", "version": "0.5.21"}, "3.10.12", None),
        ({"python": "python3", "version": "0.5.21"}, "3.9.2", "python3 is Python 3.9; sglang 0.5.21 needs 3.10"),
    ],
)
def test_python(sglang: dict[str, Any], python: str, found: str | None) -> None:
    assert messages("SGL811", host_view(sglang=sglang, python=python, venvs=())) == ([found] if found else [])
    assert messages("SGL811", host_view(sglang=sglang, python=python)) == []  # the venv is there


@pytest.mark.parametrize(
    ("glibc", "version", "said"),
    [
        ("2.31", "0.5.23", True),
        ("2.34", "0.5.23", False),
        ("2.34.9000", "0.5.23", False),
        ("2.4", "0.5.23", True),
        (None, "0.5.23", True),
        (Unknown("x"), "0.5.23", False),
        ("2.31", "0.5.9", False),
    ],
)
def test_glibc(glibc: Any, version: str, said: bool) -> None:  # noqa: ANN401, FBT001 - a case
    assert len(messages("SGL812", host_view(sglang={"version": version}, glibc=glibc, venvs=()))) == said
    assert messages("SGL812", host_view(sglang={"version": version}, glibc=glibc)) == []


LOCK = "sglang==0.5.23 \\\n    --hash=sha256:00\n" + "".join(f"package-{number}==1.0\n" for number in range(99))


@pytest.mark.parametrize(
    ("free", "venvs", "lock", "refused"),
    [
        (4 * GB - 1, (), LOCK, True),
        (4 * GB, (), LOCK, False),
        (GB, (), "sglang==0.5.23\n", False),
        (GB, (), None, False),
        (GB, ("venv1",), LOCK, False),  # nothing to build
        (Unknown("x"), (), LOCK, False),
    ],
)
def test_room(free: Any, venvs: tuple[str, ...], lock: str | None, refused: bool) -> None:  # noqa: ANN401, FBT001 - a case
    one = replace(host_view(disk=disk(free), venvs=venvs), lock=lock)
    assert len(messages("SGL813", one)) == refused


def test_room_is_reckoned_as_by_the_step_that_builds_the_venv() -> None:
    assert PACKAGE_BYTES == venv.PACKAGE_BYTES


@pytest.mark.parametrize(("free", "said"), [(GB - 1, True), (GB, False), (Unknown("x"), False)])
def test_temporary_room(free: Any, said: bool) -> None:  # noqa: ANN401, FBT001 - a case
    assert len(messages("SGL815", host_view(disk=disk(10**12, free)))) == said


@pytest.mark.parametrize(
    ("free", "said"), [(0, True), (ACTIVATION_BYTES - 1, True), (ACTIVATION_BYTES, False), (Unknown("x"), False)]
)
def test_room_for_an_activation(free: Any, said: bool) -> None:  # noqa: ANN401, FBT001 - a case
    assert len(messages("SGL827", host_view(disk=disk(free), venvs=("venv1",)))) == said


def test_room_for_an_activation_is_more_than_it_keeps() -> None:
    assert ACTIVATION_BYTES > room.PIECES * room.PIECE_BYTES


@pytest.mark.parametrize(("version", "said"), [(239, True), (241, True), (242, False), (Unknown("x"), False)])
def test_systemd(version: Any, said: bool) -> None:  # noqa: ANN401, FBT001 - a case
    assert len(messages("SGL818", host_view(systemd=version))) == said


@pytest.mark.parametrize(("runs", "said"), [(False, True), (True, False), (Unknown("x"), False)])
def test_persistenced(runs: Any, said: bool) -> None:  # noqa: ANN401, FBT001 - a case
    assert len(messages("SGL819", host_view(persistenced=runs))) == said


def test_persistenced_matters_where_one_service_runs_on_gpus() -> None:
    on_cpu, other = service(args={"device": "cpu"}), service(name="other", args={"port": 30002})
    assert messages("SGL819", host_view(on_cpu, persistenced=False)) == []
    assert len(messages("SGL819", host_view(on_cpu, other, persistenced=False))) == 1


@pytest.mark.parametrize(
    ("source", "version", "said"),
    [
        ("preinstalled", None, True),
        ("preinstalled", "12.8.1", True),
        ("preinstalled", "13.0.2", False),
        ("preinstalled", Unknown("x"), False),
        ("apt", None, False),
    ],
)
def test_a_toolkit_that_is_said_to_be_there(source: str, version: Any, said: bool) -> None:  # noqa: ANN401, FBT001 - a case
    one = host_view(cuda={"source": source}, toolkit=Toolkit(home=HOME, version=version))
    assert len(messages("SGL822", one)) == said


@pytest.mark.parametrize("found", [(), Unknown("x"), ("/etc/systemd/system/service.d/a.conf",)])
def test_a_drop_in_for_several_units_is_told(found: Any) -> None:  # noqa: ANN401 - as probed
    view = host_view()
    view.state.services["k26"] = replace(view.state.services["k26"], shared_dropins=found)  # type: ignore[index]
    said = "a drop-in for several units changes sglang-k26.service: /etc/systemd/system/service.d/a.conf"
    assert messages("SGL825", view) == ([said] if isinstance(found, tuple) and found else [])


@pytest.mark.parametrize(("arch", "said"), [("riscv64", True), ("x86_64", False), ("aarch64", False)])
def test_architecture(arch: str, said: bool) -> None:  # noqa: FBT001 - a case
    assert len(messages("SGL823", host_view(arch=arch))) == said
