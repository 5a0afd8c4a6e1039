"""The lab itself: what every other test of this tier takes for granted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab import Host, Lab, LabError, network
from lab.paths import REPOSITORY


def test_every_host_is_fully_up(lab: Lab) -> None:
    for host in lab.hosts:
        assert host.run("systemctl is-system-running").stdout.strip() == "running"
        assert host.run("hostname").stdout.strip() == host.name


def test_hosts_have_no_way_out(lab: Lab) -> None:
    assert "default" not in lab.hosts[0].run("ip route").stdout
    assert "default" not in lab.run(["ip", "route"]).stdout


@pytest.mark.parametrize("user", ["root", "operator"])
def test_both_logins_work_over_real_ssh(lab: Lab, user: str) -> None:
    done = lab.run(lab.ssh(lab.hosts[1], "id -un; sudo -n id -un; hostname", user=user), check=True)
    assert done.stdout.split() == [user, "root", "h2"]


def test_a_host_can_be_told_by_its_units(lab: Lab) -> None:
    """Stopping a unit on one host leaves the same unit on the others alone: their cgroups are not shared."""
    first, second = lab.hosts[:2]
    before = second.run("systemctl show -P MainPID ssh").stdout
    first.run("systemctl restart ssh")
    assert second.run("systemctl show -P MainPID ssh").stdout == before
    assert second.run("systemctl is-active ssh").stdout.strip() == "active"


def test_files_and_commands(host: Host) -> None:
    host.write("/etc/new/file with space", "it's\n", mode=0o640)
    assert host.read("/etc/new/file with space") == "it's\n"
    assert host.run("stat -c %a '/etc/new/file with space'").stdout.strip() == "640"
    assert host.run("id -un", user="operator").stdout.strip() == "operator"
    assert host.run("exit 3", check=False).returncode == 3
    with pytest.raises(LabError, match="nothing here"):
        host.run("echo nothing here; false")


def test_a_reset_host_is_a_new_host(lab: Lab, host: Host) -> None:
    host.write("/etc/left-behind", "x")
    host.run("systemctl mask --now ssh")
    lab.reset(host)
    assert host.run("test -e /etc/left-behind", check=False).returncode == 1
    assert lab.run(lab.ssh(host, "true")).returncode == 0


def test_power_and_cable(lab: Lab, host: Host) -> None:
    host.write("/etc/kept", "x")
    host.poweroff()
    assert not host.running
    host.boot()
    host.kill()
    assert not host.running
    host.boot()
    assert host.read("/etc/kept") == "x"
    network.connect(lab.name, host.address, 22, timeout=5).close()
    host.cut_network()
    with pytest.raises(OSError, match=r"timed out|unreachable|No route"):
        network.connect(lab.name, host.address, 22, timeout=1)
    host.restore_network()
    network.connect(lab.name, host.address, 22, timeout=10).close()


def test_nvidia_smi_stand_in(host: Host) -> None:
    plain = "--format=csv,noheader,nounits"
    query = f"nvidia-smi --query-gpu=index,name,memory.total,compute_cap,driver_version {plain}"
    lines = host.run(query).stdout.splitlines()
    assert len(lines) == 8
    assert lines[7] == "7, NVIDIA RTX PRO 6000 Blackwell Server Edition, 97887, 12.0, 580.95.05"
    apps = f"nvidia-smi --query-compute-apps=pid,used_memory,gpu_uuid {plain}"
    assert host.run(apps).stdout == ""
    host.run("echo 4711,90000,GPU-x,python >> /etc/lab-nvidia-smi/compute.csv")
    assert host.run(apps).stdout == "4711, 90000, GPU-x\n"
    assert host.run("nvidia-smi --query-gpu=nonsense --format=csv", check=False).returncode == 2
    host.write("/etc/lab-nvidia-smi/fail", "")
    broken = host.run(query, check=False)
    assert broken.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in broken.stdout


def test_the_cuda_package_really_compiles(host: Host) -> None:
    repository = "http://10.77.0.1:8080/cuda/debian12/x86_64"
    host.run(f"curl -sSfO {repository}/cuda-keyring_1.1-1_all.deb && dpkg -i cuda-keyring_1.1-1_all.deb")
    host.run("apt-get -q update && apt-get install -y --no-install-recommends cuda-toolkit-13-0")
    host.write("/root/kernel.cu", "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n")
    host.run("/usr/local/cuda-13.0/bin/nvcc -arch=sm_120 -cubin kernel.cu && test -s kernel.cubin")


def test_pyinfra_finds_the_hosts_from_anywhere(lab: Lab) -> None:
    arguments = [str(Path(sys.executable).parent / "pyinfra"), "inventory/lab.py", "exec", "--", "true"]
    assert lab.run(arguments).returncode == 0
    outside = subprocess.run(
        arguments, env=_environment(lab, user="operator"), capture_output=True, text=True, check=False
    )
    assert outside.returncode == 0, outside.stderr


def test_two_labs_do_not_meet(lab: Lab) -> None:
    other = Lab("other")
    other.down()
    try:
        other.up(hosts=1)
        lab.hosts[0].run("touch /run/of-the-first")
        assert other.hosts[0].address == lab.hosts[0].address
        assert other.hosts[0].run("test -e /run/of-the-first", check=False).returncode == 1
    finally:
        other.down()
    assert not network.namespace_path("other").exists()
    assert not other.folder.exists()
    assert lab.hosts[0].run("systemctl is-system-running").stdout.strip() == "running"


def _environment(lab: Lab, *, user: str) -> dict[str, str]:
    return os.environ | lab.environment | {"SGLANG_FLEET_LAB_USER": user}


def test_make_clean_ends_every_lab_of_the_checkout_before_it_removes_anything(tmp_path: Path) -> None:
    """In a checkout of its own whose lab has no host: what `make clean` is about is the order."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("lab", "Makefile"):
        (checkout / name).symlink_to(REPOSITORY / name)
    state = checkout / ".lab"
    environment = os.environ | {"SGLANG_FLEET_LAB": str(state)}
    up = (
        "import lab.fleet as f; f.ownership.claim('clean'); "
        "f.Lab('clean').folder.mkdir(parents=True); f.network.create('clean')"
    )
    subprocess.run([sys.executable, "-c", up], cwd=checkout, env=environment, check=True)
    assert network.namespace_path("clean").exists()
    done = subprocess.run(["make", "clean"], cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not network.namespace_path("clean").exists()
    assert not state.exists()
