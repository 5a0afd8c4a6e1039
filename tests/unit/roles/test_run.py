"""pyinfra's command line in this process: what a run finds, and what comes of it. Each in a process of its own."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from roles.own_words import _confirmed
from roles.run import exit_status
from sglang_fleet.rollout import Outcome, Replica, Rollout, Verdict, cut

CALL = """\
import json, sys
from pathlib import Path
from roles.options import Options
from roles.run import run
finished = run({inventory!r}, Path("job.py"), folder=Path({folder!r}), arguments={arguments!r}, options={options})
print(json.dumps([finished.status, finished.fleet is None]))
"""
REPORTS = """\
import json, sys, pathlib
from gevent import monkey
from roles import options
found = options.current()
print("printed by the job", flush=True)
pathlib.Path("seen").write_text(json.dumps([sys.argv, str(pathlib.Path.cwd()),
    found.pause_after, found.resume, monkey.is_module_patched("socket")]))
"""


def start(
    folder: Path,
    job: str,
    *,
    inventory: str = "@local",
    arguments: Sequence[str] = ("--dry", "-y"),
    options: str = "None",
) -> "subprocess.Popen[str]":
    (folder / "job.py").write_text(job)
    call = CALL.format(inventory=inventory, folder=str(folder), arguments=list(arguments), options=options)
    return subprocess.Popen(
        [sys.executable, "-c", call],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )


def ran(folder: Path, job: str, **how: object) -> tuple[int, bool, str]:
    """The status, whether there is no fleet, and what was said on standard error."""
    out, err = start(folder, job, **how).communicate(timeout=60)  # type: ignore[arg-type]
    assert out.count("\n") == 1, out + err  # nothing but our own line is on standard output
    status, no_fleet = json.loads(out)
    return status, no_fleet, err


def test_a_job_finds_its_folder_the_words_and_the_options_and_prints_to_standard_error(tmp_path: Path) -> None:
    status, no_fleet, err = ran(tmp_path, REPORTS, options="Options(pause_after='canary', resume=True)")
    assert (status, no_fleet) == (0, True)
    assert "printed by the job" in err
    argv, folder, pause_after, resume, patched = json.loads((tmp_path / "seen").read_text())
    assert argv == ["pyinfra", "@local", "job.py", "--dry", "-y"]
    assert (folder, pause_after, resume, patched) == (str(tmp_path), "canary", True, True)


def test_options_come_from_data_as_well(tmp_path: Path) -> None:
    ran(tmp_path, REPORTS, arguments=["--dry", "-y", "--data", "pause_after=2", "--data=resume=true"])
    assert json.loads((tmp_path / "seen").read_text())[2:4] == ["2", True]


def test_an_option_that_makes_no_sense_is_an_error_for_the_operator(tmp_path: Path) -> None:
    status, _, err = ran(tmp_path, REPORTS, arguments=["--dry", "-y", "--data", "pause_after=never"])
    assert status == 1
    assert "--data pause_after=never: write canary" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("job", "status"),
    [
        ("", 0),
        ("from pyinfra.api.exceptions import PyinfraError; raise PyinfraError('no')", 1),
        ("raise SystemExit(7)", 7),
        ("raise SystemExit('said')", 1),
        ("1 / 0", 1),
    ],
)
def test_pyinfras_exit_status_is_kept(tmp_path: Path, job: str, status: int) -> None:
    assert ran(tmp_path, job)[0] == status


def test_a_word_that_pyinfra_does_not_know_is_an_error(tmp_path: Path) -> None:
    status, _, err = ran(tmp_path, "", arguments=["--nonsense"])
    assert status == 1
    assert "No such option" in err


def test_f44_an_interrupted_run_ends_with_130_before_the_roles_have_begun(tmp_path: Path) -> None:
    process = start(tmp_path, "import gevent; print('waiting', flush=True); gevent.sleep(600)")
    assert process.stderr is not None
    assert any("waiting" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert json.loads(out)[0] == 130
    assert "interrupted: no host was changed" in err


def test_an_exit_that_turned_into_an_error_on_its_way_is_an_exit_all_the_same(tmp_path: Path) -> None:
    """pyinfra disconnects on the way out, and an error there takes the place of the exit."""
    job = """\
import os, signal, gevent
from pyinfra.context import ctx_host

def fail():
    raise OSError("the connection is gone")

ctx_host.get().connector.disconnect = fail
os.kill(os.getpid(), signal.SIGINT)
gevent.sleep(60)
"""
    status, _, err = ran(tmp_path, job)
    assert status == 130
    assert "interrupted: no host was changed" in err


def test_a_run_without_a_fleet_loads_nothing_at_its_end_where_ctrl_c_could_come(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("")
    program = CALL.format(inventory="@local", folder=str(tmp_path), arguments=["--dry", "-y"], options="None")
    program += "print('roles.shared' in sys.modules)\n"
    root = Path(__file__).parents[3]
    shown = subprocess.run([sys.executable, "-c", program], cwd=root, check=True, capture_output=True, text=True)
    assert shown.stdout.splitlines()[-1] == "False"


def test_what_sshs_threads_log_of_a_broken_connection_is_not_shown(tmp_path: Path) -> None:
    job = "import logging; logging.getLogger('paramiko.transport').error('Traceback (most recent call last):')"
    assert "Traceback" not in ran(tmp_path, job)[2]


def test_keys_that_cannot_be_used_are_told_all_at_once_and_no_host_is_tried(tmp_path: Path) -> None:
    (tmp_path / "prod.py").write_text(
        "hosts = [(name, {'ssh_hostname': '127.0.0.1', 'ssh_port': 1, 'ssh_key': key}) for name, key in "
        "(('h1', '/gone'), ('h2', '/gone'), ('h3', 'prod.py'))]"
    )
    status, no_fleet, err = ran(tmp_path, "", inventory="prod.py")
    assert (status, no_fleet) == (1, True)
    assert err.splitlines()[-4:-2] == [
        "h1, h2: the SSH key /gone is not there.",
        "h3: the SSH key prod.py is no private key.",
    ]
    assert "put the key there, or name another one" in " ".join(err.split())
    assert not {"Traceback", "Greenlet", "Could not connect"} & set(err.replace(":", " ").split())


def test_where_no_host_can_be_reached_that_is_said_without_a_place_in_the_program(tmp_path: Path) -> None:
    (tmp_path / "prod.py").write_text("hosts = [('h1', {'ssh_hostname': '127.0.0.1', 'ssh_port': 1})]")
    status, _, err = ran(tmp_path, "", inventory="prod.py")
    assert status == 1
    assert err.splitlines()[-1] == "No host could be connected to."
    assert "line" not in err


@dataclass
class FakeFleet:
    """What of a fleet counts for the exit status."""

    rollout: Rollout
    busy: tuple[str, ...]


def ended(pyinfras: int, verdicts: dict[str, Outcome], *, busy: Sequence[str] = ("h1", "h2")) -> int:
    hosts = [Replica(name, (name,)) for name in ("h1", "h2")]
    rollout = Rollout(cut(hosts, targets=lambda total: [1, total]))
    for host, outcome in verdicts.items():
        rollout.record(host, Verdict(outcome))
    fleet: Any = FakeFleet(rollout, tuple(busy))
    return exit_status(pyinfras, fleet)


@pytest.mark.parametrize(
    ("pyinfras", "verdicts", "status"),
    [
        (0, {}, 2),  # looked at, or not confirmed
        (1, {}, 1),  # the settings have errors
        (1, {"h1": Outcome.UNREACHABLE}, 1),
        (0, {"h1": Outcome.PROVEN, "h2": Outcome.PROVEN}, 0),
        (1, {"h1": Outcome.PROVEN, "h2": Outcome.PROVEN}, 1),  # it ended by an error all the same
        (1, {"h1": Outcome.RETURNED, "h2": Outcome.NOT_STARTED}, 3),
        (1, {"h1": Outcome.PROVEN, "h2": Outcome.RETURNED}, 4),
        (130, {"h1": Outcome.PROVEN}, 130),
    ],
)
def test_f46_the_exit_status_is_what_the_rollout_says_but_never_better_than_pyinfras(
    pyinfras: int, verdicts: dict[str, Outcome], status: int
) -> None:
    assert ended(pyinfras, verdicts) == status


def test_f46_with_nothing_to_do_all_is_well() -> None:
    assert ended(0, dict.fromkeys(("h1", "h2"), Outcome.UNCHANGED), busy=()) == 0


def test_what_makes_no_connection_leaves_the_standard_library_as_it_is(tmp_path: Path) -> None:
    program = (
        "import sys; from gevent import monkey; from sglang_fleet.cli import group\n"
        "group(['lint', 'gpu-1,gpu-2'], standalone_mode=False)\n"
        "print('pyinfra_cli' in sys.modules, monkey.is_module_patched('socket'), file=sys.stderr)\n"
    )
    (tmp_path / "group_vars").mkdir()
    shown = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert shown.stderr.endswith("True False\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts = [", "prod.py:1: '[' was never closed"),
        ("hosts = [nobody]", "prod.py:1: NameError: name 'nobody' is not defined"),
        ("raise SystemExit(0)", "prod.py:1: 0"),
    ],
)
def test_an_inventory_with_an_error_is_told_with_its_line_and_leaves_no_log(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "prod.py").write_text(text)
    status, no_fleet, err = ran(tmp_path, "", inventory="prod.py")
    assert (status, no_fleet) == (1, True)
    assert err.splitlines()[-1] == said
    assert "Traceback" not in err
    assert not (tmp_path / "pyinfra-debug.log").exists()


@pytest.mark.parametrize(("answer", "status"), [("", 0), ("y", 0), ("n", 2), ("nonsense", 2), (None, 2)])
def test_at_the_prompt_a_no_is_a_no(
    answer: str | None, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("" if answer is None else f"{answer}\n"))
    assert _confirmed("Detected changes displayed above, skip this step with -y") is not bool(status)
    said = capsys.readouterr().err
    assert "Unexpected" not in said
    assert ("Not confirmed. Nothing was changed." in said) is bool(status)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "@local", "--limit", "h22"], "--limit h22 matches no host of the inventory (did you mean h2?)"),
        (["--limit", "h22", "--limit", "zz*"], "--limit zz* matches no host of the inventory"),
        (["--exclude=h22"], "--exclude h22 matches no host of the inventory"),
    ],
)
def test_a_name_that_matches_nobody_is_an_error_before_anything_is_connected_to(
    tmp_path: Path, words: list[str], said: str
) -> None:
    (tmp_path / "prod.py").write_text("hosts = ['@local', 'h1', 'h2']\n")
    status, no_fleet, err = ran(tmp_path, REPORTS, inventory="prod.py", arguments=["--dry", "-y", *words])
    assert (status, no_fleet) == (1, True)
    assert said in err
    assert "Connecting" not in err
    assert not (tmp_path / "seen").exists()


def test_names_and_patterns_that_match_choose_hosts(tmp_path: Path) -> None:
    (tmp_path / "prod.py").write_text("hosts = ['@local', 'h1', 'h2']\n")
    words = ["--limit", "@loc*", "--limit", "hosts", "--exclude", "h[1-2]"]
    assert ran(tmp_path, REPORTS, inventory="prod.py", arguments=["--dry", "-y", *words])[0] == 0
    assert (tmp_path / "seen").exists()
