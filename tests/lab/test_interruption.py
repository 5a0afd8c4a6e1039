"""Controllers that die, cut cables, full disks: what runs afterwards is proven, and the next run goes on from there.

Each test names its case (shared knowledge, rollout-cases).
"""

import base64
import hashlib
import json
import re
import shlex
import signal
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab import Host, Lab
from sglang_fleet.program import boot_source, program
from tests.lab.evidence import untouched
from tests.lab.incidents import (
    STEP_SECONDS,
    WHEELS,
    arguments,
    ask_for_new_release,
    ask_for_new_venv,
    assert_serves,
    end_run,
    fault,
    hang_up,
    heal,
    read_until,
    reasons,
    server_marker,
    wait_for_activation,
)
from tests.lab.operator import SETTINGS, STATE, Operator, answers, main_pid, proven_releases, running_release, wait_for

# One host for each, so that all moments take no longer than one.
pytestmark = pytest.mark.usefixtures("healed")

MOMENTS = {"h1": "switching to release", "h2": "started as pid", "h3": "answered, ", "h4": "healthy, soaking"}
INDEX_PORT = 8099
SLOW_INDEX = f"http://127.0.0.1:{INDEX_PORT}/"
NEVER_ANSWERS = f"""\
import socket
with socket.create_server(("127.0.0.1", {INDEX_PORT})) as server:
    kept = []
    while True:
        kept.append(server.accept())
"""


def at_once(folder: Path, works: Mapping[Host, Callable[[Host, Operator], None]]) -> None:
    """Do something with each host at the same time, each with an operator of its own."""

    def one(host: Host, work: Callable[[Host, Operator], None]) -> None:
        place = folder / host.name
        place.mkdir(parents=True)
        operator = Operator(Lab(host.lab), place)
        operator.hosts([host.name])
        work(host, operator)

    with ThreadPoolExecutor(len(works)) as pool:
        list(pool.map(one, works, works.values()))


def assert_a_proven_release_runs(host: Host) -> None:
    """Wait for what goes on on the host, then it is on one release, the one it has proven last."""
    wait_for_activation(host)
    assert_serves(host, proven_releases(host)[-1])


# --- in mid-activation


def killed(process: "subprocess.Popen[str]", host: Host) -> None:
    del host
    end_run(process, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def interrupted(process: "subprocess.Popen[str]", host: Host) -> None:
    del host
    assert "interrupted" in end_run(process, signal.SIGINT)
    assert process.returncode == 128 + signal.SIGINT


def hung_up(process: "subprocess.Popen[str]", host: Host) -> None:
    hang_up(host)
    text, _ = process.communicate(timeout=STEP_SECONDS)
    assert process.returncode == 0, text
    assert "the connection was lost" in text


def unplugged_for_a_while(process: "subprocess.Popen[str]", host: Host) -> None:
    host.cut_network()
    wait_for_activation(host)
    host.restore_network()
    text, _ = process.communicate(timeout=STEP_SECONDS)
    assert process.returncode == 0, text


@pytest.mark.parametrize("cut", [killed, interrupted, hung_up, unplugged_for_a_while])
def test_f24_f35_f44_whenever_the_run_is_cut_a_proven_release_runs_and_the_next_run_goes_on(
    serving: Operator, tmp_path: Path, cut: Callable[["subprocess.Popen[str]", Host], None]
) -> None:
    def work(host: Host, operator: Operator) -> None:
        flag = ask_for_new_release(operator, health=SETTINGS["services"]["k26"]["health"])
        process = operator.start("-y")
        read_until(process, MOMENTS[host.name])
        cut(process, host)
        assert_a_proven_release_runs(host)
        done = operator.deploy()
        assert done.status == 0, done.text
        assert flag in arguments(host)
        assert_serves(host, running_release(host))

    at_once(tmp_path / "each", dict.fromkeys(serving.lab.hosts, work))


def test_f24_f35_a_host_whose_controller_is_dead_takes_a_bad_release_back_by_itself(
    serving: Operator, tmp_path: Path
) -> None:
    def work(host: Host, operator: Operator) -> None:
        old = running_release(host)
        flag = ask_for_new_release(operator)
        fault(host, only_with=flag, exit_after={"seconds": 1.5, "code": 3}, health_503_for=600)
        process = operator.start("-y")
        read_until(process, MOMENTS[host.name])
        end_run(process, signal.SIGKILL)
        wait_for_activation(host)
        assert_serves(host, old)
        heal([host])
        done = operator.deploy()
        assert done.status == 0, done.text
        assert flag in arguments(host)

    at_once(tmp_path / "each", dict.fromkeys(serving.lab.hosts[:2], work))


def test_f13_a_host_that_loses_its_power_in_mid_activation_is_brought_on_by_the_next_run(serving: Operator) -> None:
    host = serving.lab.hosts[3]
    serving.hosts([host.name])
    flag = ask_for_new_release(serving)
    process = serving.start("-y")
    read_until(process, "started as pid")
    end_run(process, signal.SIGKILL)
    host.kill()
    host.boot()
    done = serving.deploy()
    assert done.status == 0, done.text
    assert flag in arguments(host)
    assert_serves(host, running_release(host))


# --- before the switch


def test_f24_an_upload_that_is_cut_leaves_nothing(serving: Operator) -> None:
    host = serving.lab.hosts[0]
    release = proven_releases(host)[-1]
    folder = f"{STATE}/services/k26/releases"
    manifest = {**json.loads(host.read(f"{folder}/{release}/release.json")), "release": "0123456789abcdef"}
    content = base64.b64encode(program().content).decode()
    request = {
        "state": STATE,
        "service": "k26",
        "release": "0123456789abcdef",
        "folder_files": [],
        "manifest": manifest,
    }
    envelope = json.dumps({"state": STATE, "digest": "0" * 16, "program": content, "probe": "", "request": request})
    command = shlex.join(["python3", "-I", "-c", boot_source(), "stage"])
    upload = subprocess.Popen(
        ["nsenter", f"--net=/run/netns/sglang-fleet-{host.lab}", *serving.lab.ssh(host, command)], stdin=subprocess.PIPE
    )
    assert upload.stdin is not None
    with untouched(host, most_sessions=1):
        upload.stdin.write(envelope[: len(envelope) // 2].encode())
        upload.stdin.flush()
        wait_for(lambda: host.run("pgrep -f '[ ]stage$'", check=False).stdout, what="the command on the host")
        upload.kill()
        upload.communicate()
        wait_for(lambda: not host.run("pgrep -f '[ ]stage$'", check=False).stdout, what="the command's end")
    assert_serves(host, release)


def start_index(host: Host, *, slow: bool) -> None:
    """Serve the host's own wheels to itself; a slow index takes connections and never answers."""
    program_text = ["-c", NEVER_ANSWERS] if slow else ["-m", "http.server", str(INDEX_PORT), "--directory", WHEELS]
    words = shlex.join(["python3", *program_text])
    host.run(f"systemctl stop -q index.service; systemd-run -q --collect --unit=index.service {words}", check=False)
    wait_for(lambda: host.run(f"ss -Hltn sport = :{INDEX_PORT}").stdout, what="the index")


def controller_dies(process: "subprocess.Popen[str]", host: Host) -> None:
    del host
    end_run(process, signal.SIGKILL)


def host_is_gone(process: "subprocess.Popen[str]", host: Host) -> None:
    hang_up(host)
    host.cut_network()
    text, _ = process.communicate(timeout=STEP_SECONDS)
    assert process.returncode == 1, text
    assert f"{host.name} FAILED BEFORE THE SWITCH venv: the connection broke" in reasons(text)
    host.restore_network()


def connection_is_lost(process: "subprocess.Popen[str]", host: Host) -> None:
    hang_up(host)
    read_until(process, "the connection was lost")  # and a new one was made


def in_mid_build(happens: Callable[["subprocess.Popen[str]", Host], None]) -> Callable[[Host, Operator], None]:
    """Something happens while a venv is built; the old server goes on, and the next run gets to the end."""

    def work(host: Host, operator: Operator) -> None:
        old = running_release(host), main_pid(host)
        ask_for_new_release(operator)
        marker = ask_for_new_venv(operator, host, find_links=SLOW_INDEX)
        start_index(host, slow=True)
        process = operator.start("-y")
        read_until(process, "installing 1 packages")
        happens(process, host)
        assert (running_release(host), main_pid(host), answers(host)) == (*old, True)
        start_index(host, slow=False)
        if process.returncode is None:  # this run is not over: it gets there by itself
            text, _ = process.communicate(timeout=STEP_SECONDS)
            assert process.returncode == 0, text
        done = operator.deploy()
        assert done.status == 0, done.text
        assert server_marker(host) == marker
        assert_serves(host, running_release(host))
        assert ".building" not in host.run(f"ls -A {STATE}/venvs").stdout

    return work


def silent_in_mid_activation(host: Host, operator: Operator) -> None:
    """The cable is cut, so that nothing tells the controller: it has to notice; the host takes a sick release back."""
    old = running_release(host)
    health = {"startup_deadline": "3s", "ready_deadline": "3s", "interval": "300ms", "soak": "1s", "drain": "5s"}
    flag = ask_for_new_release(operator, health=health)
    fault(host, only_with=flag, dead_scheduler=True)
    process = operator.start("-y")
    read_until(process, "started as pid")
    host.cut_network()
    text, _ = process.communicate(timeout=2 * STEP_SECONDS)
    assert process.returncode == 1, text
    assert f"{host.name} UNKNOWN" in reasons(text)
    assert "the connection broke" in reasons(text)
    wait_for_activation(host)
    assert_serves(host, old)
    result = json.loads(host.run(f"cat $(ls -td {STATE}/services/k26/activations/*/ | head -1)result.json").stdout)
    assert result["outcome"] == "returned"
    assert "200, but a completion did not come back" in result["reason"]
    heal([host])
    done = operator.deploy()
    assert done.status == 0, done.text
    assert flag in arguments(host)


def test_f24_f35_f21_connections_that_die_while_a_host_builds_or_switches(serving: Operator, tmp_path: Path) -> None:
    h1, h2, h3, h4 = serving.lab.hosts
    works = {
        h1: in_mid_build(controller_dies),
        h2: in_mid_build(host_is_gone),
        h3: in_mid_build(connection_is_lost),
        h4: silent_in_mid_activation,
    }
    at_once(tmp_path / "each", works)


def put_large_wheel(host: Host) -> str:
    """Put a wheel on the host that takes 60 MB once it is unpacked; the line that locks it."""
    wheel = host.root / WHEELS.lstrip("/") / "large-1.0-py3-none-any.whl"
    wheel.parent.mkdir(parents=True, exist_ok=True)
    info = "large-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large.bin", bytes(60_000_000))
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: large\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"large.bin,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return f"large==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def test_f25_full_and_read_only_disks_and_a_build_that_fails_touch_nothing_live(serving: Operator) -> None:
    no_space, no_room, read_only, no_package = hosts = serving.lab.hosts
    before = {host.name: (running_release(host), main_pid(host)) for host in hosts}
    flag = ask_for_new_release(serving, rollout={"waves": ["100%"]})
    lock = (serving.folder / SETTINGS["sglang"]["requirements"]).read_text()
    (serving.folder / "locks/large.txt").write_text(lock + put_large_wheel(no_space))
    (serving.folder / "locks/absent.txt").write_text(f"{lock}absent==1.0 --hash=sha256:{'0' * 64}\n")
    others = {
        "h1": {"requirements": "locks/large.txt", "find_links": [WHEELS]},
        "h4": {"requirements": "locks/absent.txt"},
    }
    for name, keys in others.items():
        serving.settings({"sglang": keys}, file=f"host_vars/{name}.yml")
    releases = f"{STATE}/services/k26/releases"
    # Large enough for the check beforehand (40 MB a package), too small for the build: uv alone takes 38 MB.
    no_space.run(f"mount -t tmpfs -o size=90000k tmpfs {STATE}")
    no_room.run(f"mount -t tmpfs -o size=8k tmpfs {releases}")
    read_only.run(f"mount --bind {STATE} {STATE}; mount -o remount,bind,ro {STATE}")
    try:
        done = serving.deploy()
        left = no_space.run(f"ls -A {STATE}/venvs; ls -A {STATE}").stdout
    finally:
        for host, place in ((no_space, STATE), (no_room, releases), (read_only, STATE)):
            host.run(f"umount {place}")
    assert done.status == 1, done.text
    failed = "FAILED BEFORE THE SWITCH"
    told = {
        no_space: rf"h1 {failed} venv: no space left on the file system of {STATE}",
        no_room: rf"h2 {failed} stage: no space left on the file system of {releases}",
        read_only: rf"h3 {failed} \w+: [^:]*{STATE}[^:]*(: R| is r)ead-only",
        no_package: rf"h4 {failed} venv: uv pip install exited with status 1.*absent was not found",
    }
    for host, words in told.items():
        assert re.search(words, reasons(done.text)), done.text
        assert (running_release(host), main_pid(host), answers(host)) == (*before[host.name], True)
        left += host.run(f"ls -A {STATE}/venvs {releases}").stdout
    assert ".building" not in left
    assert ".staging" not in left
    for name in others:
        (serving.folder / f"host_vars/{name}.yml").unlink()
    activations = f"{STATE}/services/k26/activations"
    no_room.run(f"mount -t tmpfs -o size=600k tmpfs {activations}")
    done = serving.deploy()
    no_room.run(f"umount {activations}")
    begun = rf"h2 {failed} k26: no space left on the file system of {activations}.*The server was not touched\."
    assert re.search(begun, reasons(done.text)), done.text
    assert (running_release(no_room), main_pid(no_room)) == before[no_room.name]
    done = serving.deploy()
    assert done.status == 0, done.text
    assert all(flag in arguments(host) for host in hosts)
