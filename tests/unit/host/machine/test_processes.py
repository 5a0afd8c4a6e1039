import os
from pathlib import Path

import pytest

from sglang_fleet.host.machine import processes

GROUP = "/system.slice/k26.service"
TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:7531 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0
   1: 0100007F:7531 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4343 1 0 100 0 0 10 0
"""


def add(proc: Path, pid: int, *, argv: list[str], group: str = "/", environ: str = "", sockets: list[int] = []) -> None:  # noqa: B006 - read only
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
    (folder / "comm").write_text("kernelish\n")
    (folder / "environ").write_text(environ.replace("\n", "\0"))
    (folder / "cgroup").write_text(f"9:name=systemd:{group}\n1:cpu:/\n0::{group}\n")
    for number, inode in enumerate(sockets):
        (folder / "fd" / str(number)).symlink_to(f"socket:[{inode}]")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(TCP)
    server = ["/v/bin/python", "-m", "sglang.launch_server", "--api-key", "hush"]
    add(tmp_path, 10, argv=server, group=GROUP, environ="A=1\nSGLANG_FLEET_RELEASE=r1\n", sockets=[4242])
    add(tmp_path, 11, argv=["sglang::scheduler_PP0"], group=f"{GROUP}/sub")
    add(tmp_path, 12, argv=["/usr/sbin/nginx -g daemon"], group="/system.slice/nginx.service", sockets=[4343])
    return tmp_path


def test_who_listens(proc: Path) -> None:
    found = processes.listeners(30001, proc=proc)
    assert [str(process) for process in found] == ["pid 10 (python -m sglang.launch_server, k26.service)"]
    assert processes.listeners(30002, proc=proc) == []


def test_the_release_that_runs(proc: Path) -> None:
    assert processes.running_release(10, GROUP, proc=proc) == "r1"
    assert processes.running_release(0, GROUP, proc=proc) == ""
    assert processes.running_release(12, "/system.slice/nginx.service", proc=proc) == ""


def test_a_main_process_that_overwrote_its_environment_is_told_by_another_of_its_group(proc: Path) -> None:
    assert processes.running_release(11, GROUP, proc=proc) == "r1"


def test_members_of_a_group(proc: Path) -> None:
    assert sorted(processes.members(GROUP, proc=proc)) == [10, 11]
    assert processes.members("", proc=proc) == []
    assert processes.members("/", proc=proc) == []


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["/v/bin/python3.11", "-m", "sglang.launch_server", "--api-key", "x"], "python3.11 -m sglang.launch_server"),
        (["python3", "/opt/serve.py", "secret"], "python3 serve.py"),
        (["python3", "-c", "secret"], "python3"),
        (["nginx: master process /usr/sbin/nginx"], "nginx:"),
        (["/bin/sleep", "600"], "sleep"),
        ([], "kernelish"),
    ],
)
def test_a_command_is_named_without_its_arguments(tmp_path: Path, argv: list[str], says: str) -> None:
    add(tmp_path, 5, argv=argv)
    assert processes.command(5, proc=tmp_path) == says


def test_a_process_that_is_gone_is_nobody(tmp_path: Path) -> None:
    assert str(processes.process(99, proc=tmp_path)) == "pid 99 (unknown command)"


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("0::/system.slice/a.service\n", "/system.slice/a.service"),
        ("1:name=systemd:/system.slice/b.service\n0::/\n", "/system.slice/b.service"),
        ("12:cpu,cpuacct:/x\n1:name=systemd:/y\n", "/y"),
    ],
)
def test_the_control_group_on_each_kind_of_host(tmp_path: Path, text: str, group: str) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(text)
    assert processes.control_group(7, proc=tmp_path) == group


def test_our_own_process_is_found_in_the_real_proc() -> None:
    assert os.getpid() in set(processes.pids())
    assert processes.argv(os.getpid())
