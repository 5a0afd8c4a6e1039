from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from sglang_fleet.spec import Cuda, Health, Nccl, Network, Rollout, SecretSource, Service, Sglang, is_argument
from sglang_fleet.spec.durations import Duration, seconds, written
from sglang_fleet.spec.nccl import variable

DIGEST = "0" * 64
ARGS = {"model_path": "/m"}


def refused(noun: type[Any], **values: object) -> str:
    with pytest.raises(ValidationError) as error:
        noun.model_validate(values)
    return str(error.value.errors()[0]["msg"])


def service(**values: object) -> Service:
    return Service.model_validate({"name": "k26", "args": ARGS, **values})


# Durations.


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30m", 1800), ("2s", 2), ("1h30m", 5400), ("1h 30m", 5400), ("500ms", 0.5), ("1.5m", 90), (30, 30)],
)  # fmt: skip
def test_durations(text: object, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["30", "30 minutes", "m", "", "-2s", True, None, [], "2s3"])
def test_no_durations(text: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Duration).validate_python(text)


@given(st.integers(min_value=0, max_value=10**6))
def test_a_duration_reads_back_as_it_is_written(duration: int) -> None:
    assert seconds(written(duration)) == duration


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_an_interval_takes_time(value: float) -> None:
    assert refused(Health, interval=value)


# Parts.


def test_cuda_home() -> None:
    assert Cuda(version="13.0").home_path == "/usr/local/cuda-13.0"
    assert Cuda(version="13.0", home="/opt/cuda").home_path == "/opt/cuda"
    with pytest.raises(ValueError, match="wheels"):
        _ = Cuda(version="13.0", source="wheels", requirements="locks/cuda.txt").home_path


@pytest.mark.parametrize(
    "values",
    [
        {"version": "13"},
        {"version": "13.0.2"},
        {"version": 13.0},
        {"source": "wheels"},
        {"source": "wheels", "requirements": "a.txt", "home": "/opt/cuda"},
        {"source": "preinstalled", "repository": "https://example.com"},
        {"requirements": "a.txt"},
        {"repository": "ftp://example.com"},
        {"keyring_sha256": "abc"},
        {"home": "opt/cuda"},
        {"home": "/opt/../cuda"},
    ],
)
def test_cuda_refuses(values: dict[str, object]) -> None:
    assert refused(Cuda, **{"version": "13.0", **values})


def test_cuda_from_a_mirror() -> None:
    assert Cuda(version="13.0", repository="http://10.0.0.1/cuda", keyring_sha256=DIGEST).repository


@pytest.mark.parametrize(
    "values",
    [
        {"version": "0.5"},
        {"version": ">=0.5.23"},
        {"requirements": "/etc/lock.txt"},
        {"requirements": ""},
        {"python": "python2"},
        {"python": "python3; true"},
        {"index_url": "index.example"},
        {"index_url": "https://user:password@index.example/simple"},
        {"find_links": "wheels/"},
        {"find_links": [1]},
        {"find_links": ["/srv/wheels,x"]},
        {"find_links": ["https://example.com/wheels,x/"]},
        {"find_links": ["https://user:password@example.com/"]},
    ],
)
def test_sglang_refuses(values: dict[str, object]) -> None:
    assert refused(Sglang, **{"version": "0.5.23", "requirements": "locks/a.txt", **values})


@pytest.mark.parametrize("version", ["0.5.23", "0.5.6.post2", "0.6.0rc1"])
def test_sglang_versions(version: str) -> None:
    assert Sglang(version=version, requirements="a.txt").python == "python3"


# NCCL.


@pytest.mark.parametrize(
    ("values", "environment"),
    [
        ({"p2p_level": 5}, {"NCCL_P2P_LEVEL": "5"}),
        ({"p2p_level": "SYS"}, {"NCCL_P2P_LEVEL": "SYS"}),
        ({"algo": "Ring"}, {"NCCL_ALGO": "Ring"}),
        ({"algo": "^tree"}, {"NCCL_ALGO": "^tree"}),
        ({"algo": "allreduce:ring,tree;broadcast:ring"}, {"NCCL_ALGO": "allreduce:ring,tree;broadcast:ring"}),
        ({"proto": "LL,Simple"}, {"NCCL_PROTO": "LL,Simple"}),
        ({"ib_disable": True, "p2p_disable": False}, {"NCCL_P2P_DISABLE": "0", "NCCL_IB_DISABLE": "1"}),
        ({"socket_ifname": "eth0", "debug": "info"}, {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_DEBUG": "info"}),
        ({}, {}),
    ],
)
def test_nccl(values: dict[str, Any], environment: dict[str, str]) -> None:
    assert Nccl(**values).environment() == environment


@pytest.mark.parametrize(
    "values",
    [
        {"p2p_level": "sys"},
        {"p2p_level": "FAR"},
        {"p2p_level": -1},
        {"p2p_level": True},
        {"algo": "Rings"},
        {"proto": "fast"},
        {"ib_disable": 1},
        {"debug": "verbose"},
        {"p2plevel": 5},
    ],
)
def test_nccl_refuses(values: dict[str, object]) -> None:
    assert refused(Nccl, **values)


def test_nccl_says_that_case_matters() -> None:
    assert refused(Nccl, p2p_level="sys") == "is ignored by NCCL when written as 'sys'"


def test_a_variable_of_nccl() -> None:
    assert variable("p2p_level") == "NCCL_P2P_LEVEL"


# Rollout.


@pytest.mark.parametrize(
    ("waves", "total", "targets"),
    [
        ([1, "25%", "100%"], 24, (1, 6, 24)),
        ([1, "25%", "100%"], 10, (1, 3, 10)),
        ([1, "25%", "100%"], 4, (1, 4)),
        ([1, "25%", "100%"], 1, (1,)),
        ([1, "25%", "100%"], 0, ()),
        ([5, "10%", "100%"], 10, (5, 10)),
        (["30%", "100%"], 10, (3, 10)),
        (["12.5%", "100%"], 8, (1, 8)),
        (["100%"], 3, (3,)),
    ],
)
def test_waves(waves: list[int | str], total: int, targets: tuple[int, ...]) -> None:
    assert Rollout.model_validate({"waves": waves}).targets(total) == targets


_shares = st.integers(1, 50) | st.integers(1, 100).map(lambda part: f"{part}%")


@given(st.lists(_shares, max_size=4), st.integers(0, 1000))
def test_waves_rise_to_all_hosts(shares: list[int | str], total: int) -> None:
    try:
        targets = Rollout.model_validate({"waves": [*shares, "100%"]}).targets(total)
    except ValidationError:
        return
    assert list(targets) == sorted(set(targets))
    assert not total or targets[-1] == total


@pytest.mark.parametrize(
    ("waves", "message"),
    [
        ([], "has no wave"),
        ([1, "50%"], "never reaches all replicas: the last wave is 50%"),
        ([1, 5], "never reaches all replicas: the last wave is 5"),
        ([2, 1, "100%"], "goes down"),
        (["50%", "25%", "100%"], "goes down"),
        ([0, "100%"], "has a wave of nobody: 0"),
        (["0%", "100%"], "has a wave of nobody: 0%"),
        (["101%"], "expects a number of replicas or a percentage, got '101%'"),
        (["all"], "expects a number of replicas or a percentage, got 'all'"),
        ([True, "100%"], "expects a number of replicas or a percentage, got True"),
    ],
)
def test_waves_that_cannot_be(waves: list[object], message: str) -> None:
    assert refused(Rollout, waves=waves) == message


@pytest.mark.parametrize(("budget", "allowed"), [(0, 0), (2, 2), ("10%", 2), ("0%", 0), (99, 24)])
def test_the_failure_budget(budget: int | str, allowed: int) -> None:
    assert Rollout(failure_budget=budget).budget(24) == allowed


@pytest.mark.parametrize(
    ("most", "total", "down"), [(None, 8, None), (2, 8, 2), ("25%", 8, 2), ("10%", 8, 1), (9, 8, 8)]
)
def test_how_many_may_be_down(most: int | str | None, total: int, down: int | None) -> None:
    assert Rollout(max_down=most).most_down(total) == down


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_down": 0}, "is 0: nothing could ever change"),
        ({"max_down": "0%"}, "is 0%: nothing could ever change"),
        ({"max_down": "half"}, "expects a number of replicas or a percentage, got 'half'"),
        ({"canary": ["h1", "h2", "h1"]}, "names h1 twice"),
        ({"on_unreachable": "skip"}, "could never skip: a failure_budget of 0 allows for nobody who is left out"),
        (
            {"on_unreachable": "skip", "failure_budget": "0%"},
            "could never skip: a failure_budget of 0% allows for nobody who is left out",
        ),
    ],
)
def test_a_rollout_refuses(values: dict[str, object], message: str) -> None:
    assert refused(Rollout, **values) == message


@pytest.mark.parametrize(
    "values",
    [{"on_unreachable": "drop"}, {"confirm": 0}, {"progress_deadline": "0s"}, {"keep": -1}, {"canary": "h1"}],
)
def test_a_rollout_refuses_too(values: dict[str, object]) -> None:
    assert refused(Rollout, **values)


def test_a_rollout_takes() -> None:
    one = Rollout.model_validate({
        "canary": ["h2"], "max_down": "25%", "on_unreachable": "skip", "failure_budget": 1, "progress_deadline": "1h",
        "confirm": "2m", "keep": 0,
    })  # fmt: skip
    assert (one.canary, one.progress_deadline, one.confirm, one.keep) == (("h2",), 3600, 120, 0)


# Health.


def test_the_proofs_of_a_server_have_defaults() -> None:
    plain = Health()
    assert (plain.ready_deadline, plain.arguments, plain.counters) == (300, True, True)
    assert (plain.golden, plain.throughput, plain.address) == (None, None, None)
    full = Health.model_validate({"golden": {"prompts": ["a"]}, "throughput": {}})
    assert full.golden is not None
    assert full.golden.model_dump() == {"prompts": ("a",), "tolerance": 0.9, "tokens": 32}
    assert full.throughput is not None
    assert full.throughput.model_dump() == {"at_least": 0.9, "requests": 8, "tokens": 64}


@pytest.mark.parametrize(
    "values",
    [
        {"ready_deadline": 0},
        {"golden": {}},
        {"golden": {"prompts": []}},
        {"golden": {"prompts": ["a", "a"]}},
        {"golden": {"prompts": [" "]}},
        {"golden": {"prompts": ["a"], "tolerance": 1.1}},
        {"golden": {"prompts": ["a"], "tolerance": 0}},
        {"throughput": {"at_least": 90}},
        {"throughput": {"requests": 0}},
        {"address": "10.0.0.1:30000"},
    ],
)
def test_a_gate_refuses(values: dict[str, object]) -> None:
    assert refused(Health, **values)


# Network.


@pytest.mark.parametrize("address", ["10.0.0.1", "gpu-1", "gpu-1.example.net", "fd00::1"])
def test_addresses_of_a_host(address: str) -> None:
    assert Network(address=address, interface="enp1s0f0np0").address == address


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1", "is this host alone: 127.0.0.1"),
        ("localhost", "is this host alone"),
        ("::", "is no single address: ::"),
        ("0.0.0.0", "is no single address: 0.0.0.0"),  # noqa: S104  # refused
        ("10.0.0.1:20000", "is no address of a host: '10.0.0.1:20000'"),
        ("10.0.0.256", "is no address of a host: '10.0.0.256'"),
        ("http://gpu-1", "is no address of a host: 'http://gpu-1'"),
        ("", "is empty"),
    ],
)
def test_addresses_that_reach_no_host(address: str, message: str) -> None:
    assert refused(Network, address=address) == message


@pytest.mark.parametrize("name", ["eth 0", "=eth0", "enp1s0,enp2s0", "a" * 16])
def test_what_is_no_interface(name: str) -> None:
    assert refused(Network, interface=name).startswith("is no name of a network interface")


# Secrets.


@pytest.mark.parametrize("source", [{"env": "K26"}, {"file": "secrets/k26"}, {"command": "pass show k26"}])
def test_secrets(source: dict[str, str]) -> None:
    assert SecretSource(**source).model_dump(exclude_none=True) == source


@pytest.mark.parametrize("source", [{}, {"env": "A", "file": "b"}, {"env": "sk-123"}, {"value": "x"}])
def test_secrets_that_cannot_be(source: dict[str, object]) -> None:
    assert refused(SecretSource, **source)


def test_upper_case_secrets_are_variables() -> None:
    assert [is_argument(name) for name in ("api_key", "HF_TOKEN")] == [True, False]


# Services.


def test_a_service_has_defaults() -> None:
    plain = service()
    assert (plain.unit_name, plain.user, plain.gpus, plain.health.drain) == (
        "sglang-k26.service",
        "sglang",
        None,
        120,
    )
    assert plain.args.ordered() == [("model_path", "/m")]
    assert (plain.args.port, plain.args.host, plain.args.tp_size) == (30000, "127.0.0.1", 1)


def test_a_service_cannot_change() -> None:
    with pytest.raises(ValidationError):
        service().user = "root"  # type: ignore[misc]  # the point of the test


@pytest.mark.parametrize(
    "values",
    [
        {"name": "K26"},
        {"name": "-k26"},
        {"name": "k" * 60},
        {"unit": "k26"},
        {"unit": "k26@1.service"},
        {"unit": "../k26.service"},
        {"user": "Root"},
        {"user": "a b"},
        {"gpus": []},
        {"gpus": [0, 0]},
        {"gpus": [-1]},
        {"gpus": ["0"]},
        {"description": "two\nlines"},
        {"environment": {"A": True}},
        {"environment": {"A": 1.5}},
        {"environment": {"A": "\0"}},
        {"environment": {"A": "\uffff"}},  # systemd would drop the variable
        {"environment": {"A": ["b"]}},
        {"environment": {"A-B": "c"}},
        {"environment": {"SGLANG_FLEET_RELEASE": "x"}},
        {"secrets": {"Api-Key": {"env": "X"}}},
        {"secrets": {"api_key": "sk-123"}},
        {"extra_args": "--flag"},
        {"extra_args": [1]},
        {"extra_args": ["--port", "1"]},
        {"extra_args": ["--tp-size=2"]},
        {"extra_args": ["--api-key=x"]},
        {"extra_args": ["--config=x"]},
        {"limits": {"nofile": "many"}},
        {"limits": {"nofile": -1}},
        {"writable_paths": ["data"]},
        {"working_directory": "~"},
        {"nodes": 0},
        {"rendezvous_port": 0},
        {"seat": None},
        {"args": {}},
        {"args": {"model_path": " "}},
        {"args": {"model_path": "/m", "json_model_override_args": {"a": ["\0"]}}},
        {"args": {"model_path": "/m", "chat_template": "\ud83d"}},
    ],
)
def test_a_service_refuses(values: dict[str, object]) -> None:
    assert refused(Service, **{"name": "k26", "args": ARGS, **values})


def test_a_service_takes() -> None:
    full = service(
        unit="k26.service",
        gpus=[1, 0],
        environment={"A": 8, "B": "x y"},
        extra_args=["--patched", "a b"],
        limits={"nofile": 1024, "memlock": "infinity"},
        writable_paths=["/data"],
        working_directory="/srv",
    )
    assert (full.unit_name, full.gpus, full.environment) == ("k26.service", (1, 0), {"A": "8", "B": "x y"})
    assert (full.limits.nofile, full.limits.memlock, full.extra_args) == (
        "1024",
        "infinity",
        ("--patched", "a b"),
    )
