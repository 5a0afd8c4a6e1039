"""The steps before an activation, on a real host: accounts, venv, CUDA toolkit, staged releases."""

import hashlib
import json
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lab import Host
from lab.paths import REPOSITORY, cache_folder
from lab.server import index_page
from sglang_fleet.program import program
from tests.lab.activation import wait_for

if TYPE_CHECKING:
    import subprocess

STATE = "/var/lib/sglang-fleet"
SERVER = "http://10.77.0.1:8080"
INDEX = f"{SERVER}/simple/"
PROGRAM = f"{STATE}/host/program.pyz"
VENVS = f"{STATE}/venvs"


@dataclass(frozen=True)
class Steps:
    """One clean host that has the host program."""

    host: Host

    def run(self, command: str, **request: object) -> "subprocess.CompletedProcess[str]":
        text = json.dumps({"state": STATE, **request})
        return self.host.run(f"python3 -I {PROGRAM} {command}", stdin=text, check=False, timeout=300)

    def done(self, command: str, **request: object) -> list[str]:
        """Run a command that must succeed; what it said."""
        finished = self.run(command, **request)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout.splitlines()

    def refused(self, command: str, **request: object) -> str:
        """Run a command that must fail in a foreseen way; the error and its cure."""
        finished = self.run(command, **request)
        assert finished.returncode == 1, finished.stdout + finished.stderr
        assert finished.stderr.startswith("error: ")
        assert "Traceback" not in finished.stderr
        return finished.stderr

    def names(self, folder: str) -> list[str]:
        """What is in a folder, but for locks."""
        listed = self.host.run(f"ls -A {folder} 2>/dev/null || true").stdout.split()
        return [name for name in listed if not name.startswith(".lock")]


@pytest.fixture(name="steps")
def host_with_program(host: Host) -> Steps:
    place = host.root / PROGRAM.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(program().content)
    return Steps(host)


def uv_pin() -> dict[str, Any]:
    """The version and digest of the uv that the lab's index offers."""
    page = (index_page("uv") or b"").decode()
    version = page.partition("/wheels/uv-")[2].partition("-")[0]
    return {"version": version, "sha256": {"x86_64": page.partition("#sha256=")[2].partition('"')[0]}}


def venv(venv_id: str = "v1", **change: object) -> dict[str, object]:
    return {
        "venv_id": venv_id,
        "requirements": (REPOSITORY / "locks/lab-sglang-0.5.23.txt").read_text(),
        "python": "python3.11",
        "index_url": INDEX,
        "find_links": [],
        "uv": uv_pin(),
        "package": "sglang",
        "version": "0.5.23",
        "imports": ["sglang"],
        "user": "sglang",
        "deadline": 120,
        **change,
    }


def cuda(source: str = "apt", **change: object) -> dict[str, object]:
    return {
        "source": source,
        "version": "13.0",
        "home": "/usr/local/cuda-13.0",
        "repository": f"{SERVER}/cuda",
        "keyring_sha256": None,
        "architectures": ["120"],
        "deadline": 200,
        **change,
    }


def works(steps: Steps, venv_id: str) -> bool:
    command = f"{VENVS}/{venv_id}/bin/python -c 'import sglang'"
    return steps.host.run(f"runuser -u sglang -- {command}", check=False).returncode == 0


# -- Models --


def test_a_model_is_looked_at_as_the_account_that_serves_it(steps: Steps) -> None:
    steps.done("account", users=["sglang"])
    steps.host.run("mkdir -m 755 /srv/m /srv/links && echo {} > /srv/m/config.json && mkdir -m 700 /srv/closed")
    steps.host.run("echo x > /srv/closed/weights && ln -s /srv/closed/weights /srv/links/weights")
    readable = {"path": "/srv/m", "user": "sglang"}
    assert steps.done("model", models=[readable]) == ["/srv/m: whole, and readable to sglang"]
    linked = {"path": "/srv/links", "user": "sglang"}
    assert "sglang cannot read /srv/links/weights" in steps.refused("model", models=[readable, linked])
    steps.host.run("echo { > /srv/m/config.json")
    assert "/srv/m: config.json is not a JSON object" in steps.refused("model", models=[readable])
    steps.host.run("echo {} > /srv/m/config.json && chmod 600 /srv/m/config.json")
    assert "sglang cannot read /srv/m/config.json" in steps.refused("model", models=[readable])
    assert "there is no account ghost" in steps.refused("model", models=[{"path": "/srv/m", "user": "ghost"}])


# -- Accounts and venvs --


def test_account_and_venv_from_the_index(steps: Steps) -> None:
    assert steps.done("account", users=["root", "sglang"]) == ["created the system account sglang"]
    assert steps.done("account", users=["sglang"]) == []
    entry = steps.host.run("getent passwd sglang").stdout.strip().split(":")
    assert entry[5:] == ["/var/lib/sglang", "/usr/sbin/nologin"]
    said = steps.done("venv", **venv())
    assert said[0].startswith("fetching uv ")
    assert said[-1] == "venv v1 is complete: 1 packages"
    assert steps.names(VENVS) == ["v1"]
    assert works(steps, "v1")
    # Nobody but root changes it, and nothing of it names the folder it was built in.
    writable = steps.host.run(f"find {VENVS}/v1 ! -user root -o -perm /022 ! -type l").stdout
    assert writable == ""
    assert steps.host.run(f"grep -rIl building- {VENVS}/v1/bin || true").stdout == ""
    assert steps.done("venv", **venv()) == ["venv v1 is there already"]


def test_no_index_anywhere_is_told_with_its_cure(steps: Steps) -> None:
    said = steps.refused("venv", **venv(user="root", index_url=None))
    assert "names no package index" in said
    assert "sglang.index_url" in said
    steps.host.write("/etc/pip.conf", f"[global]\nindex-url = {INDEX}\n")
    steps.done("venv", **venv(user="root", index_url=None))


def test_a_python_that_is_not_there(steps: Steps) -> None:
    assert "it has: python3.11" in steps.refused("venv", **venv(user="root", python="python3.12"))


def test_what_the_service_user_cannot_run_is_refused(steps: Steps) -> None:
    """As root everything imports; what counts is whom the service runs as."""
    steps.done("account", users=["sglang"])
    steps.host.run("mkdir -m 700 /opt/mine && cp /usr/bin/python3.11 /opt/mine/python3.11")
    said = steps.refused("venv", **venv(python="/opt/mine/python3.11"))
    assert "as sglang" in said or "Permission denied" in said
    assert steps.names(VENVS) == []


HANGING = """\
import socket, time
server = socket.create_server(("127.0.0.1", 9999))
kept = []
while True:
    kept.append(server.accept())
"""


def hanging_index(steps: Steps) -> str:
    """Start an index on the host that takes requests and never answers."""
    steps.host.write("/root/hanging.py", HANGING)
    steps.host.run("systemd-run --unit=hanging python3 /root/hanging.py")
    listens = "ss -ltn | grep -q 127.0.0.1:9999"
    wait_for(lambda: steps.host.run(listens, check=False).returncode == 0)
    return "http://127.0.0.1:9999/simple/"


def uv_runs(steps: Steps) -> bool:
    return steps.host.run("pgrep -x uv", check=False).returncode == 0


def test_f25_a_build_that_hangs_or_is_killed_is_never_used(steps: Steps) -> None:
    steps.done("account", users=["sglang"])
    steps.done("venv", **venv())
    index = hanging_index(steps)
    steps.host.run(f"rm -rf {STATE}/uv/cache")
    said = steps.refused("venv", **venv("v2", index_url=index, deadline=4))
    assert "still running at its deadline" in said
    assert steps.names(VENVS) == ["v1"]
    assert not uv_runs(steps)

    request = json.dumps({"state": STATE, **venv("v2", index_url=index)})
    steps.host.write("/root/request.json", request)
    start = f"exec python3 -I {PROGRAM} venv < /root/request.json"
    # Its own scope keeps systemd from doing the killing of children that the program has to see to.
    steps.host.run(f"systemd-run --unit=build -p KillMode=process sh -c {shlex.quote(start)}")
    wait_for(lambda: uv_runs(steps) and len(steps.names(VENVS)) == 2)
    steps.host.run("kill -9 $(systemctl show -P MainPID build)")
    wait_for(lambda: not uv_runs(steps))
    half = [name for name in steps.names(VENVS) if name != "v1"]
    assert len(half) == 1
    assert half[0].startswith(".building-v2-")
    steps.done("venv", **venv("v2"))
    assert steps.names(VENVS) == ["v1", "v2"]
    assert works(steps, "v1")


def test_f25_f38_pruning_leaves_a_build_alone_and_removes_the_half_that_a_killed_one_left(steps: Steps) -> None:
    steps.done("account", users=["sglang"])
    steps.done("venv", **venv())  # which fetches uv
    steps.host.run(f"rm -rf {STATE}/uv/cache")
    request = json.dumps({"state": STATE, **venv("v2", index_url=hanging_index(steps))})
    steps.host.write("/root/request.json", request)
    start = f"exec python3 -I {PROGRAM} venv < /root/request.json"
    steps.host.run(f"systemd-run --unit=build -p KillMode=process sh -c {shlex.quote(start)}")
    wait_for(lambda: uv_runs(steps) and len(steps.names(VENVS)) == 2)
    half = [name for name in steps.names(VENVS) if name != "v1"]
    steps.done("lock", run="r1", who="test@controller", what="test")
    pruned = json.loads(steps.done("prune", run="r1", keep=0)[-1])
    assert pruned["removed"] == ["venv v1"]  # no release names it
    assert pruned["skipped"] == ["uv's cache: uv is at work"]
    assert steps.names(VENVS) == half
    steps.host.run("kill -9 $(systemctl show -P MainPID build)")
    wait_for(lambda: not uv_runs(steps))
    assert json.loads(steps.done("prune", run="r1", keep=0)[-1])["removed"] == [f"the unfinished {VENVS}/{half[0]}"]
    assert steps.names(VENVS) == []


def test_f25_a_full_or_read_only_disk_touches_nothing(steps: Steps) -> None:
    steps.done("account", users=["sglang"])
    options = "size=400m,nr_inodes=3000"
    steps.host.run(
        f"mkdir /root/aside && cp -a {STATE}/. /root/aside && mount -t tmpfs -o {options},mode=755 none {STATE} "
        f"&& cp -a /root/aside/. {STATE}"
    )
    steps.done("venv", **venv())
    # A disk without a free inode is as full as one without a free byte, and the space seen beforehand is plenty.
    steps.host.run(
        f"mkdir {STATE}/filler && cd {STATE}/filler && ! seq 5000 | xargs touch 2>/dev/null && rm 1 2 3 4 5 6 7 8 9"
    )
    said = steps.refused("venv", **venv("v2"))
    assert "no space left on the file system of" in said
    assert "make room" in said
    assert steps.names(VENVS) == ["v1"]
    assert works(steps, "v1")

    files = [{"name": f"file{i}", "mode": "0644", "owner": "root", "text": "x"} for i in range(20)]
    manifest = {"schema": 1, "release": "r1", "files": {}}
    said = steps.refused("stage", service="k26", release="r1", folder_files=files, manifest=manifest)
    assert "no space left" in said
    assert steps.names(f"{STATE}/services/k26/releases") == []

    steps.host.run(f"rm -rf {STATE}/filler && mount -o remount,noexec {STATE}")
    assert f"the file system of {STATE}/uv is mounted noexec" in steps.refused("venv", **venv("v2"))
    steps.host.run(f"mount -o remount,exec,ro {STATE}")
    assert "read-only" in steps.refused("venv", **venv("v2"))
    assert "read-only" in steps.refused("stage", service="k26", release="r1", folder_files=files, manifest=manifest)
    assert works(steps, "v1")
    steps.host.run(f"mount -o remount,rw {STATE}")
    steps.done("venv", **venv("v2"))
    steps.done("stage", service="k26", release="r1", folder_files=files, manifest=manifest)
    assert steps.names(f"{STATE}/services/k26/releases") == ["r1"]


def test_f25_little_room_is_told_before_anything_is_fetched(steps: Steps) -> None:
    steps.host.run(f"mkdir -p {VENVS} && mount -t tmpfs -o size=10m,mode=755 none {VENVS}")
    said = steps.refused("venv", **venv(user="root"))
    assert "1 packages take about 40 MB" in said
    assert steps.names(f"{STATE}/uv") == []


# -- The CUDA toolkit --


PROGRAM_ON_GPU = """\
__global__ void scale(float *values) { values[threadIdx.x] *= 2; }
int main() { scale<<<1, 1>>>(nullptr); return cudaDeviceSynchronize(); }
"""


def builds(steps: Steps, home: str) -> bool:
    """Whether an ordinary user can compile and link with the toolkit, as JIT kernels are at run time."""
    steps.host.write("/srv/scale.cu", PROGRAM_ON_GPU)
    command = f"{home}/bin/nvcc -arch=sm_120 /srv/scale.cu -o scale -lcudart && test -x scale"
    return steps.host.run(command, user="operator", check=False).returncode == 0


def test_cuda_from_apt_really_compiles(steps: Steps) -> None:
    said = steps.done("cuda", **cuda())
    assert said[-1] == "CUDA 13.0.88 at /usr/local/cuda-13.0 compiles for 120"
    assert [name.partition("-")[0] for name in steps.names(f"{STATE}/cuda")] == ["verified"]
    assert builds(steps, "/usr/local/cuda-13.0")
    assert steps.host.run("apt-get check -q").returncode == 0
    assert steps.names("/etc/apt/sources.list.d").count("sglang-fleet-cuda.list") == 1

    # Again: verified, and apt is not so much as started; also where the repository has gone.
    history = steps.host.run("cat /var/log/apt/history.log /var/log/dpkg.log").stdout
    said = steps.done("cuda", **cuda(repository="http://10.77.0.1:1/gone"))
    assert said[0].endswith("is installed already")
    assert steps.host.run("cat /var/log/apt/history.log /var/log/dpkg.log").stdout == history

    # A toolkit that was there and has lost a part is not believed.
    steps.host.run("chmod 0 /usr/local/cuda-13.0/bin/ptxas; mv /usr/local/cuda-13.0/bin/ptxas /root")
    assert "compiling a kernel for 120" in steps.refused("cuda", **cuda("preinstalled"))


def test_cuda_keyring_and_architecture_are_held_to(steps: Steps) -> None:
    assert "not the pinned" in steps.refused("cuda", **cuda(keyring_sha256="0" * 64))
    assert steps.names("/etc/apt/keyrings") == []
    keyring = steps.host.run(f"curl -sSf {SERVER}/cuda/debian12/x86_64/cuda-keyring_1.1-1_all.deb | sha256sum").stdout
    said = steps.refused("cuda", **cuda(keyring_sha256=keyring.split()[0], architectures=["120", "999"]))
    assert "compute_999 is not among" in said
    assert steps.names(f"{STATE}/cuda") == []


HOLD_DPKG = """\
import fcntl, signal
held = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(held, fcntl.LOCK_EX)
open("/run/held", "w")
signal.pause()
"""


def test_apt_by_somebody_else_is_waited_for_and_named(steps: Steps) -> None:
    steps.host.write("/root/hold.py", HOLD_DPKG)
    steps.host.run("systemd-run --unit=upgrade python3 /root/hold.py")
    wait_for(lambda: steps.host.run("test -e /run/held", check=False).returncode == 0)
    said = steps.refused("cuda", **cuda(lock_seconds=2))
    pid = steps.host.run("systemctl show -P MainPID upgrade").stdout.strip()
    assert f"dpkg is in use by process {pid} (python3)" in said
    steps.host.run("systemctl stop upgrade")
    steps.done("cuda", **cuda())


def test_an_interrupted_dpkg_is_told_with_its_cure(steps: Steps) -> None:
    deb = "cuda-keyring_1.1-1_all.deb"
    steps.host.run(f"curl -sSfO {SERVER}/cuda/debian12/x86_64/{deb} && dpkg --unpack {deb}")
    assert "dpkg --configure -a" in steps.refused("cuda", **cuda())
    steps.host.run("dpkg --configure -a")
    # That package's own list names the very repository: with a second one of ours, apt would refuse both.
    said = steps.done("cuda", **cuda())
    assert "is in /etc/apt/sources.list.d/cuda-debian12-x86_64.list already" in said[0]


def test_a_repository_that_is_not_there(steps: Steps) -> None:
    said = steps.refused("cuda", **cuda(repository=f"{SERVER}/other"))
    assert f"cannot read {SERVER}/other/debian12/x86_64/cuda-keyring_1.1-1_all.deb: 404" in said
    assert "repository" in said


def test_cuda_from_wheels_really_compiles(steps: Steps) -> None:
    wheels = steps.host.root / "srv/wheels"
    wheels.mkdir(parents=True)
    for wheel in (cache_folder() / "downloads").glob("nvidia_*.whl"):
        shutil.copy(wheel, wheels)
    lock = Path(REPOSITORY / "locks/cuda-13.0-wheels.txt").read_text()
    cuda_id = hashlib.sha256(lock.encode()).hexdigest()[:16]
    home = f"{STATE}/cuda/{cuda_id}/nvidia/cu13"
    request = cuda(
        "wheels",
        home=home,
        cuda_id=cuda_id,
        requirements=lock,
        uv=uv_pin(),
        python="python3.11",
        index_url=INDEX,
        find_links=["/srv/wheels"],
    )
    said = steps.done("cuda", **request)
    assert said[-1] == f"CUDA 13.0.88 at {home} compiles for 120"
    assert builds(steps, home)
    assert steps.done("cuda", **request) == [said[-1]]


# -- Releases --


def test_a_staged_release_shows_its_secrets_to_its_user_only(steps: Steps) -> None:
    steps.done("account", users=["sglang"])
    texts = {"unit": ("0644", "root"), "environment": ("0600", "root"), "secrets.yaml": ("0400", "sglang")}
    files = [
        {"name": name, "mode": mode, "owner": owner, "text": f"poison-7 {name}\n"}
        for name, (mode, owner) in texts.items()
    ]
    digests = {file["name"]: hashlib.sha256(file["text"].encode()).hexdigest() for file in files}
    manifest = {"schema": 1, "service": "k26", "release": "r1", "files": digests}
    request = {"service": "k26", "release": "r1", "folder_files": files, "manifest": manifest}
    said = steps.done("stage", **request)
    assert "poison-7" not in "".join(said)
    place = f"{STATE}/services/k26/releases/r1"
    stat = steps.host.run(f"stat -c '%n %a %U' {place} {place}/*").stdout.replace(f"{place}/", "").splitlines()
    assert stat[1:] == ["environment 600 root", "release.json 600 root", "secrets.yaml 400 sglang", "unit 644 root"]
    assert stat[0].endswith("r1 755 root")
    read = f"cat {place}/secrets.yaml"
    assert steps.host.run(f"runuser -u sglang -- {read}").stdout == "poison-7 secrets.yaml\n"
    assert steps.host.run(f"runuser -u operator -- {read}", check=False).returncode != 0
    assert steps.done("stage", **request) == ["release r1 is staged already"]
