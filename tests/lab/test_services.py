"""Two services on one host, under an account of their own; and the CUDA toolkit from each of its sources."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from lab import Host, Lab
from tests.lab.incidents import reasons
from tests.lab.operator import API_KEY, SETTINGS, STATE, Operator, answers

MODEL = "/srv/models/tiny"
KERNEL = "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"


def service(port: int, gpus: list[int], **args: Any) -> dict[str, Any]:
    return {
        "args": {"model_path": MODEL, "port": port, "host": "0.0.0.0", "pp_size": len(gpus), **args},  # noqa: S104 - the hosts of the lab are reachable from nowhere
        "gpus": gpus,
        "secrets": {"api_key": {"env": "K26_API_KEY"}},
        "health": {"startup_deadline": "30s", "interval": "300ms", "soak": "500ms", "drain": "5s"},
    }


def tree(*, cuda: Mapping[str, Any] | None = None, **services: Any) -> dict[str, Any]:
    both = {"chat": service(30001, [0, 1, 2, 3]), "code": service(30002, [4, 5, 6, 7])}
    return {**SETTINGS, "cuda": cuda or SETTINGS["cuda"], "services": both | services}


@pytest.fixture(scope="module", name="clean")
def a_clean_host(lab: Lab) -> Iterator[Host]:
    """The first host, clean before the first test of this file and after the last; tests start from `two` services."""
    first = lab.hosts[0]
    if not first.is_pristine:
        lab.reset(first)
    first.mark_used()
    yield first
    lab.reset(first)  # other files' services want its port


@pytest.fixture(name="two")
def two_services(clean: Host, operator: Operator) -> Operator:
    operator.hosts([clean.name])
    operator.settings(tree())
    done = operator.deploy()
    assert done.status == 0, done.text
    return operator


def shown(host: Host, name: str, field: str) -> str:
    return host.run(f"systemctl show -P {field} sglang-{name}.service").stdout.strip()


def variables(host: Host, name: str) -> dict[str, str]:
    text = host.run(f"tr '\\0' '\\n' < /proc/{shown(host, name, 'MainPID')}/environ").stdout
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def compiles(host: Host, home: str) -> bool:
    """Whether a server that looks for nvcc where its environment says finds one that works."""
    script = (
        f"cd $(mktemp -d) && echo '{KERNEL}' > k.cu && {home}/bin/nvcc -gencode=arch=compute_120,code=sm_120 -c k.cu"
    )
    return host.run(script, check=False).returncode == 0


def verified(host: Host) -> list[dict[str, Any]]:
    """The notes of the toolkits that were seen to compile."""
    text = host.run(f"cat {STATE}/cuda/verified-*.json 2>/dev/null | tr '\\n' ' '", check=False).stdout
    return [json.loads(f"{{{part}") for part in text.split("{")[1:]]


def test_both_serve_each_on_its_gpus_under_an_account_of_their_own(two: Operator, clean: Host) -> None:
    del two
    assert answers(clean, port=30001)
    assert answers(clean, port=30002)
    assert variables(clean, "chat")["CUDA_VISIBLE_DEVICES"] == "0,1,2,3"
    assert variables(clean, "code")["CUDA_VISIBLE_DEVICES"] == "4,5,6,7"
    pids = " ".join(shown(clean, name, "MainPID") for name in ("chat", "code"))
    assert clean.run(f"ps -o user= -p {pids.replace(' ', ',')}").stdout.split() == ["sglang", "sglang"]
    account = clean.run("getent passwd sglang").stdout.strip().split(":")
    assert account[-1] == "/usr/sbin/nologin"
    assert clean.run("passwd -S sglang").stdout.split()[1] == "L"


def test_the_server_may_write_to_its_home_and_caches_and_nowhere_else(two: Operator, clean: Host) -> None:
    """As the server sees its file system: in its mount namespace, as its account."""
    del two
    found = variables(clean, "chat")
    folders = [found[name] for name in ("HOME", "XDG_CACHE_HOME", "FLASHINFER_WORKSPACE_BASE")]
    folders += [found[name].rpartition("/")[0] for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")]
    inside = f"nsenter -m -t {shown(clean, 'chat', 'MainPID')} setpriv --reuid=sglang --regid=sglang --clear-groups"
    for folder in {*folders, "/tmp"}:  # noqa: S108 - the unit's own
        assert clean.run(f"{inside} touch {folder}/probe", check=False).returncode == 0, folder
    for folder in (MODEL, STATE, "/usr/local", "/etc", "/var/lib", "/var/lib/sglang/code"):
        assert clean.run(f"{inside} touch {folder}/probe", check=False).returncode != 0, folder
    release = f"{STATE}/services/chat/releases/{found['SGLANG_FLEET_RELEASE']}"
    assert API_KEY in clean.run(f"{inside} cat {release}/secrets.yaml").stdout
    assert clean.run(f"{inside} cat {release}/environment", check=False).returncode != 0


def test_a_change_of_one_service_leaves_the_other_running(two: Operator, clean: Host) -> None:
    before = {name: shown(clean, name, "MainPID") for name in ("chat", "code")}
    two.settings(tree(code=service(30002, [4, 5, 6, 7], context_length=4096)))
    done = two.deploy()
    assert done.status == 0, done.text
    assert shown(clean, "chat", "MainPID") == before["chat"]
    assert shown(clean, "code", "MainPID") != before["code"]
    assert "chat on h1" not in done.text
    assert answers(clean, port=30002)
    assert (
        "--context-length 4096" in clean.run(f"tr '\\0' ' ' < /proc/{shown(clean, 'code', 'MainPID')}/cmdline").stdout
    )


def test_when_the_second_of_two_changes_fails_the_first_goes_back_with_it(two: Operator, clean: Host) -> None:
    before = {name: variables(clean, name)["SGLANG_FLEET_RELEASE"] for name in ("chat", "code")}
    broken = service(30002, [4, 5, 6, 7]) | {"extra_args": ["--no-such-flag"]}
    two.settings(tree(chat=service(30001, [0, 1, 2, 3], context_length=4096), code=broken))
    done = two.deploy()
    assert done.status != 0
    assert "RETURNED" in done.verdict("h1"), done.text
    assert {name: variables(clean, name)["SGLANG_FLEET_RELEASE"] for name in before} == before
    assert answers(clean, port=30001)
    assert answers(clean, port=30002)


def test_a_port_or_a_gpu_for_two_services_is_an_error_of_the_settings(two: Operator, clean: Host) -> None:
    before = {name: shown(clean, name, "MainPID") for name in ("chat", "code")}
    two.settings(tree(code=service(30001, [3, 4, 5, 6])))
    done = two.deploy()
    assert done.status != 0
    lines = (two.folder / "group_vars/all.yml").read_text().splitlines()
    ports = [number for number, line in enumerate(lines, start=1) if '"port": 30001' in line]
    gpus = [number for number, line in enumerate(lines, start=1) if '"gpus": [' in line]
    assert f"group_vars/all.yml:{ports[1]}  services.code.args.port" in done.text
    assert "is chat's port too: 30001" in done.text
    assert f"group_vars/all.yml:{gpus[1]}  services.code.gpus" in done.text
    assert "shares GPU 3 with chat" in done.text
    assert {name: shown(clean, name, "MainPID") for name in before} == before


def test_what_would_go_back_onto_gpus_of_another_service_is_refused_unless_that_goes_back_before_it(
    two: Operator, clean: Host
) -> None:
    old = {name: variables(clean, name)["SGLANG_FLEET_RELEASE"] for name in ("chat", "code")}
    two.settings(tree(chat=service(30001, [0, 1]), code=service(30002, [2, 3, 4, 5, 6, 7])))
    done = two.deploy()
    assert done.status == 0, done.text
    before = {name: shown(clean, name, "MainPID") for name in old}
    code = variables(clean, "code")["SGLANG_FLEET_RELEASE"]
    refused = two.run("--data", f"release={old['chat']}", script="rollback.py")
    assert refused.status == 1, refused.text
    said = f"h1 REFUSED chat cannot go back to release {old['chat']} beside release {code} of code: it shares GPU 2, 3"
    assert said in reasons(refused.text)
    assert {name: shown(clean, name, "MainPID") for name in old} == before
    both = two.run(script="rollback.py")
    assert both.status == 0, both.text
    assert {name: variables(clean, name)["SGLANG_FLEET_RELEASE"] for name in old} == old
    assert both.text.index("[h1] code: leaving") < both.text.index("[h1] chat: leaving")  # who has the GPUs goes first


def test_gpus_are_handed_over_in_one_deploy_and_not_swapped(two: Operator, clean: Host) -> None:
    two.settings(tree(chat=service(30001, [0, 1, 2, 3, 4, 5]), code=service(30002, [6, 7])))
    done = two.deploy()
    assert done.status == 0, done.text
    assert done.text.index("[h1] code: stopped") < done.text.index("[h1] chat: stopped")
    before = {name: shown(clean, name, "MainPID") for name in ("chat", "code")}
    two.settings(tree(chat=service(30001, [6, 7]), code=service(30002, [0, 1])))
    refused = two.deploy()
    assert refused.status == 1, refused.text
    assert "chat and code would each start on GPUs or a port that another of them still has" in reasons(refused.text)
    assert {name: shown(clean, name, "MainPID") for name in before} == before
    clean.run("systemctl stop sglang-chat.service")
    done = two.deploy()
    assert done.status == 0, done.text
    assert variables(clean, "chat")["CUDA_VISIBLE_DEVICES"] == "6,7"
    assert variables(clean, "code")["CUDA_VISIBLE_DEVICES"] == "0,1"
    clean.run("systemctl stop sglang-chat.service")  # from here to `two` is a swap again


def test_a_model_that_the_account_cannot_read_is_refused_before_anything_stops(two: Operator, clean: Host) -> None:
    before = {name: shown(clean, name, "MainPID") for name in ("chat", "code")}
    two.settings(tree(code=service(30002, [4, 5, 6, 7], model_path="/root/models/Kimi-K2.6")))
    done = two.deploy()
    assert done.status != 0
    assert "sglang cannot read /root/models/Kimi-K2.6" in done.text
    assert "or set `user:` of the service" in " ".join(done.text.split())
    assert {name: shown(clean, name, "MainPID") for name in before} == before


def test_a_toolkit_from_wheels_is_installed_and_compiles(two: Operator, clean: Host) -> None:
    two.settings(tree(cuda={"version": "13.0", "source": "wheels", "requirements": "locks/cuda-13.0-wheels.txt"}))
    done = two.deploy()
    assert done.status == 0, done.text
    home = variables(clean, "chat")["CUDA_HOME"]
    assert home.startswith(f"{STATE}/cuda/")
    assert home in {note["home"] for note in verified(clean)}
    assert compiles(clean, home)
    assert variables(clean, "chat")["PATH"].split(":")[1] == f"{home}/bin"
    again = two.deploy()
    assert "nothing to do on h1" in again.text


def test_a_toolkit_that_is_there_already_is_only_verified(two: Operator, clean: Host) -> None:
    clean.run(f"rm {STATE}/cuda/verified-*.json")
    release = variables(clean, "chat")["SGLANG_FLEET_RELEASE"]
    two.settings(tree(cuda={"version": "13.0", "source": "preinstalled"}))
    done = two.deploy()
    assert done.status == 0, done.text
    assert "verify the CUDA toolkit" in done.text
    assert [(note["home"], note["architectures"]) for note in verified(clean)] == [("/usr/local/cuda-13.0", ["120"])]
    assert compiles(clean, "/usr/local/cuda-13.0")
    assert variables(clean, "chat")["SGLANG_FLEET_RELEASE"] == release
    assert "nothing to do on h1" in two.deploy().text


def test_a_toolkit_that_is_not_there_is_no_reason_to_stop_anything(two: Operator, clean: Host) -> None:
    before = shown(clean, "chat", "MainPID")
    two.settings(tree(cuda={"version": "13.0", "source": "preinstalled", "home": "/opt/cuda-13.0"}))
    done = two.deploy()
    assert done.status != 0
    assert "there is no CUDA toolkit at /opt/cuda-13.0" in " ".join(done.text.split())
    assert shown(clean, "chat", "MainPID") == before
