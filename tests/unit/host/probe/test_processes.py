"""Processes are named, and never by what could be a key."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.host.probe.processes import command, python_program, unit_of
from tests.unit.host.probe.folder_host import Host


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["/v/bin/python3", "-m", "sglang.launch_server", "--api-key", "k"], "python3 -m sglang.launch_server"),
        (["python3.11", "-u", "-X", "dev", "-W", "k", "/opt/serve.py", "k"], "python3.11 serve.py"),
        (["python3", "-msglang.launch_server", "--api-key", "k"], "python3"),
        (["python3", "-c", "k"], "python3"),
        (["python3", "-ck"], "python3"),
        (["python3", "-", "k"], "python3"),
        (["python3", "-m", "k=k"], "python3"),
        (["python3", "-m"], "python3"),
        (["python3", "--check-hash-based-pycs", "k"], "python3"),
        (["sglang::scheduler_TP0 --api-key k"], "sglang::scheduler_TP0"),
        (["nginx", "k"], "nginx"),
        (["bad\x1b[31m"], "bad?[31m"),
    ],
)
def test_a_process_is_named_without_its_arguments(host: Host, arguments: list[str], name: str) -> None:
    host.process(9, *arguments)
    host.write("/proc/9/comm", Path(arguments[0]).name.partition(" ")[0])
    assert command(str(host.root), 9) == name


@given(st.lists(st.sampled_from(["-u", "-m", "-c", "-mmodule", "-", "--api-key", "--api-key=SECRET"])))
def test_no_value_of_an_option_is_ever_named(arguments: list[str]) -> None:
    assert "SECRET" not in python_program([*arguments, "--api-key", "SECRET"])


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("0::/system.slice/a.service\n", "a.service"),
        ("0::/system.slice/a.service/worker\n", "a.service"),
        ("0::/user.slice/user-0.slice/session-5.scope\n", "session-5.scope"),
        ("12:memory:/x\n1:name=systemd:/system.slice/a.service\n0::/\n", "a.service"),
        ("1:cpu:/\n0::/docker/0123\n", None),
        ("", None),
    ],
)
def test_the_unit_of_a_process(host: Host, cgroup: str, unit: str | None) -> None:
    host.write("/proc/9/cgroup", cgroup)
    assert unit_of(str(host.root), 9) == unit
