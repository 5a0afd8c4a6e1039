"""The whole observation, and the source that makes it."""

import ast
import json
import subprocess
import sys

from sglang_fleet.observe import known
from tests.unit.host.probe.folder_host import SERVICE, SOURCE, STATE, Host


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
