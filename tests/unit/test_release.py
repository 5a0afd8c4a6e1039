"""A release is addressed by its content: the same everywhere, and another as soon as anything in it differs."""

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.release import PLACEHOLDER, Release, cuda_wheels_home, make_release, venv_identity
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


venvs = st.tuples(st.text(), st.from_regex(r"python3(\.[0-9]+)?", fullmatch=True))


@given(venvs, venvs)
def test_a_venv_is_addressed_by_its_lock_and_its_interpreter(one: tuple[str, str], other: tuple[str, str]) -> None:
    identities = [venv_identity(requirements=lock, python=python) for lock, python in (one, other)]
    assert (identities[0] == identities[1]) is (one == other)


def test_a_toolkit_from_wheels_has_a_folder_for_each_lock() -> None:
    identity, home = cuda_wheels_home("nvidia-cuda-nvcc==13.0.88\n")
    assert home == f"/var/lib/sglang-fleet/cuda/{identity}/nvidia/cu13"
    assert cuda_wheels_home("nvidia-cuda-nvcc==13.0.89\n")[0] != identity
