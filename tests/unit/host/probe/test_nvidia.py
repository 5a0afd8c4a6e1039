"""GPUs."""

from pathlib import Path

import pytest

from sglang_fleet.observe import Unknown, known
from tests.unit.host.probe.folder_host import GPU, Host


def test_gpus_and_who_holds_them(host: Host) -> None:
    host.nvidia_smi(compute="4711, GPU-0a, 90000")
    host.process(4711, "/v/bin/python3", "-m", "sglang.launch_server", "--api-key", "sk-poison", unit="x.service")
    state = host.look()
    gpu, process = known(state.gpus)[0], known(state.compute)[0]
    assert (gpu.index, gpu.memory_total_mib, gpu.memory_used_mib, gpu.compute_cap) == (0, 97887, 4, "12.0")
    assert (process.gpu_uuid, process.used_mib) == ("GPU-0a", 90000)
    assert str(process) == "python3 -m sglang.launch_server (pid 4711, x.service)"
    assert "sk-poison" not in host.run()


def test_a_compute_process_that_has_just_gone_has_an_unknown_name(host: Host) -> None:
    host.nvidia_smi(compute="4711, GPU-0a, [N/A]")
    compute = known(host.look().compute)
    assert compute[0].pid == 4711
    assert isinstance(compute[0].command, Unknown)
    assert isinstance(compute[0].used_mib, Unknown)


def test_a_host_without_gpus_has_none(host: Host) -> None:
    host.nvidia_smi(gpus="No devices were found")
    assert (host.look().gpus, host.look().driver) == ((), None)


def test_without_nvidia_smi_the_gpus_are_unknown(host: Host) -> None:
    (host.programs / "nvidia-smi").unlink()
    state = host.look()
    assert state.gpus == state.driver == state.compute == Unknown("nvidia-smi: not found")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", "exit status 18: Failed"),
        ("echo 'GPU 0'", "unexpected answer: GPU 0"),
        ("echo '[Unknown Error], GPU-0a, x, 1, 1, 12.0, 580'", "index: '[Unknown Error]' is not a number"),
        ("printf '\\377\\376\\n'", "unexpected answer"),
        ("yes", "more than 1048576 bytes of output, killed"),
    ],
)
def test_f7_an_nvidia_smi_that_fails_is_unknown(host: Host, script: str, why: str) -> None:
    host.program("nvidia-smi", script)
    state = host.look()
    assert isinstance(state.gpus, Unknown)
    assert why in state.gpus.why
    assert state.services["k26"].unit is None


def test_f7_an_nvidia_smi_that_hangs_is_killed_with_all_it_started(host: Host) -> None:
    host.program("nvidia-smi", f"sleep 300 & echo $! > {host.programs}/pid-$$; wait")
    state = host.look(timeout=0.5)
    assert state.gpus == state.compute == Unknown("nvidia-smi: no answer in time, killed")
    started = [int(path.read_text()) for path in host.programs.glob("pid-*")]
    assert len(started) == 2
    assert not any(runs(pid) for pid in started)


def runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"  # a zombie waits for init, and does nothing


def test_an_unread_number_of_one_gpu_hides_nothing(host: Host) -> None:
    host.nvidia_smi(gpus=GPU.replace("97887", "[N/A]"))
    state = host.look()
    assert isinstance(known(state.gpus)[0].memory_total_mib, Unknown)
    assert state.unknowns() == ()


def test_what_the_iommu_does_with_the_gpus(host: Host) -> None:
    assert host.look().iommu == ()
    for bus, kind in (("0000:41:00.0", "DMA-FQ"), ("0000:81:00.0", "DMA-FQ"), ("0000:c1:00.0", "identity")):
        host.write(f"/proc/driver/nvidia/gpus/{bus}/information")
        host.write(f"/sys/bus/pci/devices/{bus}/iommu_group/type", f"{kind}\n")
    host.write("/proc/driver/nvidia/gpus/0000:c2:00.0/information")  # behind no IOMMU
    assert host.look().iommu == ("DMA-FQ", "identity")
