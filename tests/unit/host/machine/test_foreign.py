import subprocess
from pathlib import Path

import pytest

from sglang_fleet.host.machine import foreign
from sglang_fleet.host.machine.foreign import CannotTellError, GpuUse, answerer, gpu_holders, parse_uses, port_holders
from sglang_fleet.host.machine.processes import Process

GROUP = "/system.slice/k26.service"
OURS = Process(10, "python -m sglang.launch_server", "k26.service", GROUP)
OTHER = Process(12, "nginx", "nginx.service", "/system.slice/nginx.service")
GPUS = "0, GPU-a\n1, GPU-b\n"


def test_who_holds_the_port_from_outside() -> None:
    assert port_holders(1, GROUP, listening=lambda _: [OURS, OTHER]) == [OTHER]
    assert port_holders(1, "", listening=lambda _: [OURS]) == [OURS]


def test_who_answers_on_the_port() -> None:
    assert answerer(1, GROUP, listening=lambda _: [OURS]) == ""
    assert "pid 12 (nginx, nginx.service)" in answerer(1, GROUP, listening=lambda _: [OURS, OTHER])
    assert answerer(1, GROUP, listening=lambda _: []) == "nobody listens on port 1 any more"


def smi(monkeypatch: pytest.MonkeyPatch, uses: str, *, status: int = 0) -> None:
    def run(arguments: list[str], **_more: object) -> subprocess.CompletedProcess[str]:
        text = GPUS if "index" in arguments[1] else uses
        return subprocess.CompletedProcess(arguments, status, text, "")

    monkeypatch.setattr(foreign, "run_program", run)
    known = {OURS.pid: OURS, OTHER.pid: OTHER}
    monkeypatch.setattr(foreign, "process", lambda pid: known.get(pid, Process(pid, "", "", "")))


def test_who_computes_on_the_gpus_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    smi(monkeypatch, "10, GPU-a, 80000\n12, GPU-b, 4000\n")
    says = ["pid 12 (nginx, nginx.service) holds 4000 MiB of GPU-b"]
    assert gpu_holders(None, GROUP, managed=lambda _: False) == says
    assert gpu_holders([1], GROUP, managed=lambda _: False) == says
    assert gpu_holders([0], GROUP, managed=lambda _: False) == []
    assert gpu_holders(None, GROUP, managed=lambda unit: unit == "nginx.service") == []


def test_a_process_nobody_knows_is_foreign(monkeypatch: pytest.MonkeyPatch) -> None:
    smi(monkeypatch, "4711, GPU-a, 1\n")
    assert gpu_holders(None, GROUP, managed=lambda _: True) == ["pid 4711 (unknown command) holds 1 MiB of GPU-a"]


def test_no_process_is_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    smi(monkeypatch, "\n")
    assert gpu_holders([0, 1], GROUP, managed=lambda _: False) == []


@pytest.mark.parametrize(("uses", "status"), [("", 9), ("No devices were found", 0)])
def test_an_answer_that_says_nothing_is_not_nobody(monkeypatch: pytest.MonkeyPatch, uses: str, status: int) -> None:
    smi(monkeypatch, uses, status=status)
    with pytest.raises(CannotTellError):
        gpu_holders(None, GROUP, managed=lambda _: False)


def test_a_service_without_gpus_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    smi(monkeypatch, "12, GPU-b, 4000\n", status=9)
    assert gpu_holders([], GROUP, managed=lambda _: False) == []


def test_a_gpu_that_is_not_listed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    smi(monkeypatch, "10, GPU-a, 80000\n")
    with pytest.raises(CannotTellError, match="does not list GPU 7"):
        gpu_holders([7], GROUP, managed=lambda _: False)


@pytest.mark.parametrize("error", [FileNotFoundError(), subprocess.TimeoutExpired("nvidia-smi", 60)])
def test_nvidia_smi_that_cannot_be_asked(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def run(*_arguments: object, **_more: object) -> None:
        raise error

    monkeypatch.setattr(foreign, "run_program", run)
    with pytest.raises(CannotTellError, match="nvidia-smi"):
        gpu_holders(None, GROUP, managed=lambda _: False)


def test_rows_are_parsed() -> None:
    assert parse_uses("1, GPU-a, 2\n3, GPU-b, [N/A]\n") == [GpuUse(1, "GPU-a", "2"), GpuUse(3, "GPU-b", "[N/A]")]


def test_a_managed_unit_is_told_by_its_section(tmp_path: Path) -> None:
    (tmp_path / "a.service").write_text("[Service]\n[X-Sglang-Fleet]\nService=a\n")
    (tmp_path / "b.service").write_text("[Service]\n# [X-Sglang-Fleet] not\n")
    assert foreign.is_managed(tmp_path, "X-Sglang-Fleet", "a.service")
    assert not foreign.is_managed(tmp_path, "X-Sglang-Fleet", "b.service")
    assert not foreign.is_managed(tmp_path, "X-Sglang-Fleet", "c.service")
