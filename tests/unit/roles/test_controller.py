"""Who runs this, and whether a process that held a lock is gone."""

import os
import subprocess

import pytest

from roles.controller import is_gone, this_process


def test_this_process_is_not_gone() -> None:
    assert not is_gone(this_process())


def test_a_process_that_has_ended_here_is_gone() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert is_gone({**this_process(), "pid": ended.pid})


def test_another_process_with_the_same_number_is_another_one() -> None:
    assert is_gone({**this_process(), "started": "1"})


@pytest.mark.parametrize("key", ["host", "boot"])
def test_nothing_is_said_of_processes_elsewhere(key: str) -> None:
    gone = {**this_process(), "started": "1"}
    assert not is_gone({**gone, key: "another"})


@pytest.mark.parametrize("key", ["host", "boot", "pid", "started"])
def test_nothing_is_said_of_what_is_not_known(key: str) -> None:
    told = {**this_process(), "started": "1"}
    del told[key]
    assert not is_gone(told)


def test_a_child_that_nobody_has_waited_for_is_gone() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_gone({**this_process(), "pid": child.pid})
    child.wait()
