"""The CUDA toolkit from apt: waiting for others, leaving theirs alone, and every failure with its cure."""

import fcntl
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sglang_fleet.host.errors import HostError
from sglang_fleet.host.install import apt, apt_repository, cuda
from tests.unit.host.cuda_stand_ins import NVCC, install_nvcc, request, run
from tests.unit.host.stand_ins import Programs, Site, sha256, site

MACHINE = {"x86_64": "x86_64", "aarch64": "sbsa"}[platform.machine()]


@pytest.fixture(name="programs", autouse=True)
def only_fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path / "bin", monkeypatch)


@pytest.fixture(autouse=True)
def folders_of_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "os-release").write_text('NAME="x"\nID=debian\nVERSION_ID="12"\n')
    (tmp_path / "etc/sources.list.d").mkdir(parents=True)
    monkeypatch.setattr(apt_repository, "OS_RELEASE", str(tmp_path / "os-release"))
    monkeypatch.setattr(apt_repository, "APT_FOLDER", str(tmp_path / "etc"))
    monkeypatch.setattr(apt, "LOCKS", (str(tmp_path / "lock"),))
    monkeypatch.setattr(apt, "LOCK_INTERVAL", 0.02)


@pytest.fixture(name="web")
def serve() -> Iterator[Site]:
    with site() as shown:
        yield shown


def fake_apt(
    programs: Programs, tmp_path: Path, *, status: str = "", install: str = "", update: str = "", audit: str = ""
) -> None:
    """Have an apt whose `install` leaves a toolkit behind, unless the test says otherwise."""
    nvcc = tmp_path / "cuda-13.0/bin/nvcc"
    (tmp_path / "nvcc").write_text(f"#!/bin/sh\n{NVCC}\n")
    (tmp_path / "status").write_text(status)
    install = install or f"mkdir -p {nvcc.parent}; cp {tmp_path}/nvcc {nvcc}; chmod 755 {nvcc}; "
    programs.write("dpkg-query", f"[ -s {tmp_path}/status ] && cat {tmp_path}/status")
    programs.write("dpkg", audit)
    programs.write("dpkg-deb", 'mkdir -p "$3/usr/share/keyrings"; cp "$2" "$3/usr/share/keyrings/cuda.gpg"')
    programs.write(
        "apt-get",
        f"""case "$*" in
*" update"*) env > {tmp_path}/env; {update or ":"} ;;
*" install"*) {install}
  echo 'install ok installed|13.0.2-1' > {tmp_path}/status ;;
esac""",
    )


@pytest.fixture(name="repository")
def mirror(web: Site) -> str:
    web.pages[f"/cuda/debian12/{MACHINE}/cuda-keyring_1.1-1_all.deb"] = ("x/y", b"the key")
    return f"{web.url}/cuda"


def apt_calls(programs: Programs) -> list[str]:
    return [
        " ".join(word for word in ("update", "install") if f" {word}" in call) for call in programs.calls("apt-get")
    ]


def test_apt_installs_from_the_repository_with_our_own_list_and_key(
    tmp_path: Path, programs: Programs, repository: str
) -> None:
    fake_apt(programs, tmp_path)
    said = run(request(tmp_path, "apt", repository=repository))
    listed = tmp_path / "etc/sources.list.d/sglang-fleet-cuda.list"
    key = tmp_path / "etc/keyrings/sglang-fleet-cuda.gpg"
    assert listed.read_text() == f"deb [signed-by={key}] {repository}/debian12/{MACHINE}/ /\n"
    assert key.read_bytes() == b"the key"
    update, install = programs.calls("apt-get")
    assert f"Dir::Etc::sourcelist={listed} -o Dir::Etc::sourceparts=-" in update
    assert install.endswith("install --yes --no-install-recommends --no-remove cuda-toolkit-13-0")
    assert "DPkg::Lock::Timeout=" in install
    assert "plain http" in said[0]
    settings = (tmp_path / "env").read_text()
    assert "DEBIAN_FRONTEND=noninteractive" in settings
    assert "NEEDRESTART_SUSPEND=1" in settings


def test_a_package_that_is_there_is_only_verified(
    tmp_path: Path, programs: Programs, web: Site, repository: str
) -> None:
    fake_apt(programs, tmp_path, status="install ok installed|13.0.2-1")
    install_nvcc(tmp_path)
    said = run(request(tmp_path, "apt", repository=repository))
    assert said[0] == "cuda-toolkit-13-0 13.0.2-1 is installed already"
    assert programs.calls("apt-get") == []
    assert web.asked == []


def test_a_package_that_is_there_and_broken_is_not_believed(tmp_path: Path, programs: Programs) -> None:
    fake_apt(programs, tmp_path, status="install ok installed|13.0.2-1")
    with pytest.raises(HostError, match="there is no CUDA toolkit"):
        run(request(tmp_path, "apt"))


def test_the_keyring_is_held_to_its_sha256(tmp_path: Path, programs: Programs, repository: str) -> None:
    fake_apt(programs, tmp_path)
    with pytest.raises(HostError, match="not the pinned 00"):
        run(request(tmp_path, "apt", repository=repository, keyring_sha256="00"))
    assert not (tmp_path / "etc/keyrings").exists()
    assert programs.calls("apt-get") == []
    (tmp_path / "key").write_bytes(b"the key")
    said = run(request(tmp_path, "apt", repository=repository, keyring_sha256=sha256(tmp_path / "key")))
    assert "plain http" not in said[0]


def test_somebody_elses_list_is_used_as_it_is(tmp_path: Path, programs: Programs, web: Site, repository: str) -> None:
    fake_apt(programs, tmp_path)
    theirs = tmp_path / "etc/sources.list.d/cuda-debian12-x86_64.list"
    theirs.write_text(f"# deb {repository} /\ndeb [signed-by=/usr/share/k.gpg] {repository}/debian12/{MACHINE}/ /\n")
    run(request(tmp_path, "apt", repository=repository))
    assert web.asked == []
    assert [path.name for path in theirs.parent.iterdir()] == [theirs.name]
    assert "Dir::Etc::sourcelist" not in programs.calls("apt-get")[0]


def test_credentials_of_the_repository_are_roots_alone(tmp_path: Path, programs: Programs, repository: str) -> None:
    fake_apt(programs, tmp_path, install="echo 'E: 401 http://u:poison-6@h/ poison-6'; exit 100")
    with pytest.raises(HostError) as caught:
        run(request(tmp_path, "apt", repository=repository.replace("://", "://u:poison-6@")))
    secret = tmp_path / "etc/auth.conf.d/sglang-fleet-cuda.conf"
    assert secret.stat().st_mode & 0o777 == 0o600
    assert "login u password poison-6" in secret.read_text()
    assert "poison-6" not in caught.value.what + "".join(programs.calls())
    assert "poison-6" not in (tmp_path / "etc/sources.list.d/sglang-fleet-cuda.list").read_text()


def test_old_lists_of_the_distribution_are_read_once_more(tmp_path: Path, programs: Programs, repository: str) -> None:
    fake_apt(
        programs,
        tmp_path,
        install=f"""[ -e {tmp_path}/again ] || {{
  touch {tmp_path}/again; echo 'E: unmet dependencies'; exit 100; }}
  mkdir -p {tmp_path}/cuda-13.0/bin; cp {tmp_path}/nvcc {tmp_path}/cuda-13.0/bin/nvcc
  chmod 755 {tmp_path}/cuda-13.0/bin/nvcc""",
    )
    run(request(tmp_path, "apt", repository=repository))
    assert apt_calls(programs) == ["update", "install", "update", "install"]


HOLD = """
import fcntl, sys
held = open(sys.argv[1], "w")
fcntl.lockf(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(name="holder")
def somebody_at_dpkg(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    yield holder
    holder.kill()
    holder.communicate(timeout=10)


def test_a_dpkg_in_use_is_waited_for_and_its_user_named(
    tmp_path: Path, programs: Programs, holder: "subprocess.Popen[str]"
) -> None:
    fake_apt(programs, tmp_path)
    with pytest.raises(HostError, match=rf"in use by process {holder.pid} \(python.*\) after waiting for"):
        run(request(tmp_path, "apt", lock_seconds=0.2))
    assert programs.calls("apt-get") == []


def test_a_dpkg_that_comes_free_is_used(tmp_path: Path, programs: Programs, holder: "subprocess.Popen[str]") -> None:
    fake_apt(programs, tmp_path)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if text.startswith("waiting for the dpkg lock"):
            holder.communicate("", timeout=10)

    cuda.run(request(tmp_path, "apt", lock_seconds=20), say=say)
    assert f"held by process {holder.pid}" in said[0]
    assert apt_calls(programs) == ["update", "install"]


@pytest.mark.parametrize(
    ("fake", "words", "fix"),
    [
        ({"audit": "echo 'The following packages are only half configured'"}, "half configured", "dpkg --configure -a"),
        ({"install": "echo 'E: dpkg was interrupted, you must'; exit 100"}, "interrupted", "dpkg --configure -a"),
        (
            {"install": "echo 'E: Could not get lock /x. It is held by process 7 (unattended-upgr)'; exit 100"},
            r"process 7 \(unattended-upgr\)",
            "wait",
        ),
        ({"install": "echo 'No space left on device'; exit 100"}, "no space left on the file system of /usr", "room"),
        ({"install": 'echo "E: You don\'t have enough free space in /v."; exit 100'}, "no space left", "room"),
        ({"install": "exit 100"}, "apt-get install cuda-toolkit-13-0 exited with status 100", "cuda.repository"),
        ({"update": "echo 'E: Failed to fetch'; exit 100"}, "apt-get update exited", "cuda.repository"),
        ({"install": "true; exit 0"}, "left it uninstalled", "dpkg --configure -a"),
    ],
)
def test_what_apt_cannot_do_has_a_cure(
    tmp_path: Path, programs: Programs, fake: dict[str, str], words: str, fix: str
) -> None:
    fake_apt(programs, tmp_path, **fake)
    with pytest.raises(HostError, match=words) as caught:
        run(request(tmp_path, "apt"))
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('ID=ubuntu\nVERSION_ID="22.04"', "ubuntu2204"),
        ("ID=ubuntu\nVERSION_ID='24.04'", "ubuntu2404"),
        ("ID=debian\nVERSION_ID=12", "debian12"),
        ("ID=debian\nVERSION_ID=13", "debian12"),
    ],
)
def test_names_of_distributions(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "os-release").write_text(text)
    assert apt_repository.distribution() == name


@pytest.mark.parametrize("text", ["ID=rocky\nVERSION_ID=9", "ID=debian", ""])
def test_other_distributions_are_told_what_they_can_use(tmp_path: Path, text: str) -> None:
    (tmp_path / "os-release").write_text(text)
    with pytest.raises(HostError) as caught:
        apt_repository.distribution()
    assert "wheels" in caught.value.fix
    assert "preinstalled" in caught.value.fix


def test_a_host_without_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Programs(tmp_path / "empty", monkeypatch, alone=True)
    with pytest.raises(HostError, match="no apt") as caught:
        run(request(tmp_path, "apt"))
    assert "wheels" in caught.value.fix


def test_the_holder_of_a_lock_is_asked_of_the_kernel(tmp_path: Path, holder: "subprocess.Popen[str]") -> None:
    assert struct.calcsize(apt._FLOCK) == 28  # noqa: SLF001 - <fcntl.h>'s layout without its tail padding
    assert str(holder.pid) in (apt._holder(str(tmp_path / "lock")) or "")  # noqa: SLF001
    assert apt._holder(str(tmp_path / "none")) is None  # noqa: SLF001
    descriptor = os.open(tmp_path / "other", os.O_RDWR | os.O_CREAT)
    fcntl.lockf(descriptor, fcntl.LOCK_EX)
    os.close(descriptor)
    assert apt._holder(str(tmp_path / "other")) is None  # noqa: SLF001
