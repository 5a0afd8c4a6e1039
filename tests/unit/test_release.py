"""A release is addressed by its content: the same everywhere, and another as soon as anything in it differs."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.release import PLACEHOLDER, Release, cuda_wheels_home, make_release, venv_identity
from sglang_fleet.spec import Seat
from sglang_fleet.spec.replicas import seated
from tests.factories import service

POISON = "poison-5ecret"
SECRET: dict[str, Any] = {"secrets": {"api_key": {"env": "A"}}}
IDENTITY = """\
import sys
sys.path.insert(0, ".")
from tests.unit.test_release import made
print(made().id)
"""


def made(
    *,
    venv_id: str = "v1",
    cuda_home: str = "/usr/local/cuda-13.0",
    secret: str = "",
    fingerprint: str = "",
    **changes: Any,
) -> Release:
    return make_release(
        service=service(**changes, **(SECRET if secret else {})),
        version="0.5.23",
        venv_id=venv_id,
        cuda_home=cuda_home,
        secrets={"api_key": secret} if secret else {},
        fingerprints={"api_key": fingerprint} if secret else {},
    )


def test_the_same_spec_is_the_same_release_in_every_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", IDENTITY],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {made().id}


@pytest.mark.parametrize(
    "changes",
    [
        {"args": {"pp_size": 4}},
        {"args": {"model_path": "/srv/other"}},
        {"extra_args": ["--x"]},
        {"description": "another"},
        {"unit": "other.service"},
        {"user": "sglang"},
        {"gpus": [0, 1]},
        {"nccl": {"algo": "Tree"}},
        {"environment": {"A": "1"}},
        {"limits": {"nofile": 1}},
        {"writable_paths": ["/srv"]},
        {"working_directory": "/srv"},
        {"health": {"drain": 1}},
        {"health": {"startup_deadline": 1}},
        {"venv_id": "v2"},
        {"cuda_home": "/usr/local/cuda-13.1"},
        {"secret": POISON},
    ],
)
def test_any_change_of_what_runs_is_another_release(changes: dict[str, Any]) -> None:
    assert made(**changes).id != made().id


@pytest.mark.parametrize("health", [{"soak": 99}, {"interval": 99}, {"probe": "alive"}])
def test_how_health_is_asked_for_is_not_what_runs(health: dict[str, Any]) -> None:
    """A longer soak alone must not restart a server that loads its model for half an hour."""
    assert made(health=health).id == made().id
    assert made(health=health).gate != made().gate


@pytest.mark.parametrize(
    ("args", "health", "probe"),
    [
        ({}, {}, "generate"),
        ({"is_embedding": True}, {}, "embedding"),
        ({"is_embedding": True}, {"probe": "alive"}, "alive"),
        ({"encoder_only": True}, {}, "alive"),
        ({"disaggregation_mode": "decode"}, {}, "alive"),
        ({"disaggregation_mode": "null"}, {}, "generate"),
    ],
)
def test_the_gate_asks_what_such_a_server_can_answer(args: dict[str, Any], health: dict[str, Any], probe: str) -> None:
    assert made(args=args, health=health).gate["probe"] == probe


@pytest.mark.parametrize(
    "health",
    [
        {"ready_deadline": 1},
        {"address": "k26.example.net"},
        {"arguments": False},
        {"counters": False},
        {"golden": {"prompts": ["a"]}},
        {"throughput": {}},
    ],
)
def test_what_has_to_be_proven_is_not_what_runs(health: dict[str, Any]) -> None:
    assert made(health=health).id == made().id
    assert made(health=health).gate != made().gate


def test_an_upgrade_of_the_tool_is_no_other_release() -> None:
    """A fleet must not restart for it: this id was computed before there were nodes, and before most of the gate."""
    assert made().id == "691a7247dc684c41"
    assert made().manifest(created_at="", created_by="")["replica"] is None


def test_the_gate_knows_what_has_to_be_proven() -> None:
    gate = made(
        args={"context_length": "8k", "log_level": "info"},
        health={"golden": {"prompts": ["a"]}, "throughput": {"at_least": 0.5}, "address": "k26.example.net"},
    ).gate
    assert gate["golden"] == {"prompts": ["a"], "tolerance": 0.9, "tokens": 32}
    assert gate["throughput"] == {"at_least": 0.5, "requests": 8, "tokens": 64}
    assert (gate["address"], gate["leader"], gate["counters"], gate["ready_deadline"]) == (
        "k26.example.net",
        None,
        True,
        300.0,
    )
    assert gate["arguments"] == {
        "model_path": "/root/models/Kimi-K2.6",
        "port": 30001,
        "host": "0.0.0.0",  # noqa: S104  # a listener
        "tp_size": 1,
        "pp_size": 8,
        "context_length": 8000,  # as the server reads 8k
        "log_level": "info",
    }
    assert json.loads(json.dumps(gate)) == gate


def node(rank: int, *, interface: str = "", **changes: Any) -> Release:
    """The release of one of two hosts."""
    seat = Seat(rank, 2, "h1+h2", ("h1", "h2"), "10.0.0.1", "10.0.0.1", 30001, interface)
    return make_release(
        service=seated(service(nodes=2, group="pair", **changes), seat),
        version="0.5.23",
        venv_id="v1",
        cuda_home="/usr/local/cuda-13.0",
        secrets={},
        fingerprints={},
    )


def test_the_ranks_of_a_replica_have_releases_of_their_own_and_one_of_the_replica() -> None:
    first, second = node(0, interface="eth0"), node(1, interface="ib1")
    assert first.id != second.id
    assert "--node-rank 1" in second.text("unit")
    assert "NCCL_SOCKET_IFNAME==ib1\nGLOO_SOCKET_IFNAME=ib1\n" in second.text("environment")
    assert first.replica is not None
    assert second.replica == {**first.replica, "rank": 1}
    assert first.replica["rank"] == 0
    assert first.replica["hosts"] == ["h1", "h2"]
    assert second.manifest(created_at="", created_by="")["replica"] == second.replica


@pytest.mark.parametrize("changes", [{"args": {"pp_size": 4}}, {"rendezvous_port": 1}, {"environment": {"A": "b"}}])
def test_another_service_is_another_release_of_the_replica(changes: dict[str, Any]) -> None:
    one, other = node(1).replica, node(1, **changes).replica
    assert one is not None
    assert other is not None
    assert one["id"] != other["id"]


def test_only_the_other_ranks_ask_rank_0_and_clients_ask_rank_0_alone() -> None:
    gates = [node(rank, health={"address": "k26.example.net"}).gate for rank in (0, 1)]
    assert [gate["leader"] for gate in gates] == [None, {"host": "10.0.0.1", "port": 30001}]
    assert [gate["address"] for gate in gates] == ["k26.example.net", ""]


def test_a_secret_counts_by_its_fingerprint_alone() -> None:
    """Whoever can read release ids must not be able to try values against them."""
    assert made(secret="one", fingerprint="f").id == made(secret="two", fingerprint="f").id  # noqa: S106 - no secrets
    assert made(secret="one", fingerprint="f").id != made(secret="one", fingerprint="g").id  # noqa: S106 - no secrets


def test_the_texts_name_their_own_release() -> None:
    release = made()
    assert f"Release={release.id}\n" in release.text("unit")
    assert f"SGLANG_FLEET_RELEASE={release.id}\n" in release.text("environment")
    assert not [file.name for file in release.files if PLACEHOLDER in file.text]


def test_a_file_that_a_release_does_not_have_is_empty() -> None:
    assert made().text("secrets.yaml") == ""


def test_the_manifest_holds_everything_but_secrets() -> None:
    release = made(secret=POISON, fingerprint="f", gpus=list(range(8)))
    manifest = release.manifest(created_at="2026-11-29T16:00:00+00:00", created_by="somebody@somewhere")
    assert POISON not in str(manifest)
    assert manifest["secrets"] == {"api_key": "f"}
    assert manifest["files"].keys() == {"unit", "environment", "secrets.yaml", "logging.json"}
    assert (manifest["port"], manifest["gpus"], manifest["venv_id"]) == (30001, list(range(8)), "v1")
    assert manifest["spec"]["args"]["pp_size"] == 8
    assert "secrets" not in manifest["spec"]


@pytest.mark.parametrize(
    ("changes", "gpus"),
    [
        ({}, None),
        ({"gpus": list(range(8))}, list(range(8))),
        ({"args": {"device": "cpu"}}, []),
        ({"gpus": list(range(8)), "args": {"device": "cpu"}}, []),
        ({"args": {"device": "cuda"}, "extra_args": ["--device", "cpu"]}, []),
        ({"extra_args": ["--other", "x", "--device=cpu"]}, []),
        ({"args": {"device": "cpu"}, "extra_args": ["--device", "cuda"]}, None),
        ({"extra_args": ["--device=cuda", "--device", "cpu"]}, []),
        ({"extra_args": ["--device", "cpu", "--device=cuda"]}, None),
        ({"extra_args": ["cpu", "--device"]}, None),
    ],
)
def test_the_manifest_names_no_gpus_for_a_service_on_the_cpu(changes: dict[str, Any], gpus: list[int] | None) -> None:
    manifest = made(**changes).manifest(created_at="", created_by="")
    assert manifest["gpus"] == gpus


venvs = st.tuples(st.text(), st.from_regex(r"python3(\.[0-9]+)?", fullmatch=True))


@given(venvs, venvs)
def test_a_venv_is_addressed_by_its_lock_and_its_interpreter(one: tuple[str, str], other: tuple[str, str]) -> None:
    identities = [venv_identity(requirements=lock, python=python) for lock, python in (one, other)]
    assert (identities[0] == identities[1]) is (one == other)


def test_a_toolkit_from_wheels_has_a_folder_for_each_lock() -> None:
    identity, home = cuda_wheels_home("nvidia-cuda-nvcc==13.0.88\n")
    assert home == f"/var/lib/sglang-fleet/cuda/{identity}/nvidia/cu13"
    assert cuda_wheels_home("nvidia-cuda-nvcc==13.0.89\n")[0] != identity
