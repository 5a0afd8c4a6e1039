"""Programs run on a host: bounded, with a clean environment, and without credentials in what is shown."""

import os
import time
from pathlib import Path

import pytest

from sglang_fleet.host import children
from sglang_fleet.host.errors import HostError
from tests.unit.host.stand_ins import wait_until_gone


def run(script: str, *, seconds: float = 20.0, **other: object) -> children.Finished:
    return children.run(
        ["/bin/sh", "-c", script],
        until=time.monotonic() + seconds,
        environment=children.clean_environment(home="/"),
        **other,  # type: ignore[arg-type]
    )


def test_status_and_output_of_both_streams() -> None:
    finished = run("echo one; echo two >&2; exit 3")
    assert (finished.status, finished.lines, finished.timed_out) == (3, ("one", "two"), False)


def test_output_that_is_no_text_does_not_hurt() -> None:
    assert run(r"printf 'a\377b\n'").lines == ("a\ufffdb",)


def test_only_the_last_lines_are_kept() -> None:
    lines = run("i=0; while [ $i -lt 1000 ]; do echo $i; i=$((i+1)); done").lines
    assert len(lines) == children.KEPT_LINES
    assert lines[-1] == "999"


def test_a_deadline_ends_the_child_and_all_it_started(tmp_path: Path) -> None:
    notes = tmp_path / "pids"
    started = time.monotonic()
    finished = run(
        f"trap '' TERM; sleep 60 & echo $! > {notes}; echo $$ >> {notes}; wait; sleep 60", seconds=0.5, grace=0.2
    )
    assert finished.timed_out
    assert time.monotonic() - started < 10
    for process in notes.read_text().split():
        assert wait_until_gone(int(process))


def test_an_exception_ends_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "TICK", 0.2)
    notes = tmp_path / "pids"

    def broken_pipe(_: float) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run(f"echo $$ > {notes}; exec sleep 60", tick=broken_pipe)
    assert wait_until_gone(int(notes.read_text()))


def test_whoever_is_left_behind_with_the_output_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "TICK", 0.2)
    finished = run("sleep 5 & echo $!")
    assert finished.status == 0
    os.kill(int(finished.lines[0]), 9)


def test_a_child_that_closes_its_output_is_waited_for() -> None:
    assert run("exec >&- 2>&-; sleep 0.3; exit 5").status == 5


def test_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "TICK", 0.1)
    ticks: list[float] = []
    run("sleep 0.5", tick=ticks.append)
    assert len(ticks) >= 2
    assert ticks == sorted(ticks)


def test_nothing_is_inherited_but_proxies_and_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "UV_INDEX_URL", "PIP_INDEX_URL", "LD_PRELOAD", "LANG"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    environment = children.clean_environment(home="/h", UV_CACHE_DIR="/c")
    assert environment["https_proxy"] == "http://proxy:3128"
    assert environment["LC_ALL"] == "C"
    assert environment["UV_CACHE_DIR"] == "/c"
    assert not {"PYTHONPATH", "UV_INDEX_URL", "PIP_INDEX_URL", "LD_PRELOAD", "LANG"} & set(environment)
    assert "/usr/sbin" in environment["PATH"].split(":")


def test_a_descriptor_is_kept_open_only_where_it_is_asked_for() -> None:
    memory = os.memfd_create("test")
    try:
        assert run(f"echo one >> /proc/self/fd/{memory}", descriptors=[memory]).status == 0
        assert run(f"echo two >> /proc/self/fd/{memory}").status != 0
        assert os.pread(memory, 100, 0) == b"one\n"
    finally:
        os.close(memory)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(HostError, match="cannot start /no/such/program"):
        children.run(["/no/such/program"], until=time.monotonic() + 5, environment={})


def test_an_unknown_user() -> None:
    with pytest.raises(HostError, match="there is no user nobody-by-this-name"):
        children.account("nobody-by-this-name")


def test_credentials_are_masked_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:prox%40word@proxy:3128")
    urls = ["https://user:poison-1@index.example/simple", "https://poison-token@other.example/"]
    text = (
        "GET https://user:poison-1@index.example/simple failed: auth poison-1 "
        "http://a:b@c/d prox@word prox%40word and poison-token"
    )
    shown = children.mask(text, urls=urls)
    for secret in ("poison", "a:b@", "prox@word", "prox%40word"):
        assert secret not in shown
    assert "https://***@index.example/simple" in shown


def test_a_failure_shows_the_last_lines_masked() -> None:
    finished = children.Finished(2, tuple(f"line {i} http://u:poison@h/" for i in range(40)), timed_out=False)
    error = children.failure("uv", finished)
    assert error.what.startswith("uv exited with status 2\n")
    assert len(error.what.splitlines()) == 1 + children.SHOWN_LINES
    assert "poison" not in error.what


def test_its_own_reason_stands_in_the_first_line_masked() -> None:
    finished = children.Finished(2, ("beside",), timed_out=False)
    error = children.failure("uv", finished, why="no answer of http://u:poison@h/")
    assert error.what.splitlines() == ["uv exited with status 2: no answer of http://***@h/", "    beside"]


def test_how_a_child_ended_is_said() -> None:
    assert "signal 9" in children.failure("uv", children.Finished(-9, (), timed_out=False)).what
    assert "deadline" in children.failure("uv", children.Finished(-15, (), timed_out=True)).what
