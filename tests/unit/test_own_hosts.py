"""What `make test-real HOST=` takes for hosts of one's own, and what it says of others."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.hosts import own, own_settings

HOSTS = [("gpu-1", {"ssh_hostname": "192.0.2.7", "ssh_user": "deploy", "ssh_port": 2222, "_sudo": True, "note": "x"})]
LOCK = "sglang==0.5.23 --hash=sha256:" + "0" * 64 + "\n"


def service(*, gpus: list[int] | None = None, **args: Any) -> dict[str, Any]:
    return {
        "args": {"model_path": "/srv/models/x", "port": 30009, **args},
        "unit": f"chat-{args.get('port', 1)}.service",
        "secrets": {"api_key": {"env": "CHAT_KEY"}},
        **({"gpus": gpus} if gpus else {}),
    }


@pytest.fixture(autouse=True)
def consent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(own.CONSENT, "yes")
    monkeypatch.setenv("CHAT_KEY", "a-key-of-theirs")


def write(folder: Path, services: dict[str, Any], hosts: list[tuple[str, dict[str, Any]]] = HOSTS) -> Path:
    tree = {
        "cuda": {"version": "13.0"},
        "sglang": {"version": "0.5.23", "requirements": "locks/sglang.txt"},
        "services": services,
    }
    texts = {
        "group_vars/all.yml": json.dumps(tree),
        "locks/sglang.txt": LOCK,
        "inventory/prod.py": f"gpu = {hosts!r}\n",
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder / "inventory/prod.py"


def why_not(inventory: Path | str) -> str:
    with pytest.raises(own.Unusable) as refused:
        own.own_fleet(inventory)
    return str(refused.value)


def test_the_service_is_what_the_settings_say(tmp_path: Path) -> None:
    fleet = own.own_fleet(write(tmp_path, {"chat": service()}))
    assert (fleet.service, fleet.unit, fleet.port, fleet.key) == ("chat", "chat-1.service", 30009, "a-key-of-theirs")
    assert "a-key" not in repr(fleet)
    [host] = fleet.hosts
    assert (host.name, host.address) == ("gpu-1", "192.0.2.7")
    words = host.command("echo '$HOME' | wc")
    assert {"-oUser=deploy", "-oPort=2222"} < set(words)
    assert words[-2:] == ["192.0.2.7", """sudo -n -- sh -c 'echo '"'"'$HOME'"'"' | wc'"""]


def test_a_change_is_an_override_of_one_run(tmp_path: Path) -> None:
    inventory = write(tmp_path, {"chat": service()})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    fleet = own.own_fleet(inventory)
    fleet.change(args={"max_running_requests": 7, "json_model_override_args": '{"a": 1}'}, extra_args=["--no"])
    assert fleet.overrides == (
        "--data=services.chat.args.max_running_requests=7",
        r'--data=services.chat.args.json_model_override_args="{\"a\": 1}"',
        '--data=services.chat.extra_args=["--no"]',
    )
    fleet.change()
    assert not fleet.overrides
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_nothing_is_done_to_hosts_whose_operator_has_not_agreed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(own.CONSENT)
    assert f"{own.CONSENT}=yes" in why_not(write(tmp_path, {"chat": service()}))


@pytest.mark.parametrize(
    ("services", "hosts", "said"),
    [
        (
            {"chat": service(gpus=[0]), "more": service(gpus=[1], port=2)},
            HOSTS,
            "one and the same service, and no other",
        ),
        ({}, HOSTS, "one and the same service"),
        ({"chat": service(nonsense=2)}, HOSTS, "nonsense"),
        ({"chat": service(ssl_certfile="/x", ssl_keyfile="/x")}, HOSTS, "has ssl_certfile"),
        ({"chat": service()}, [("gpu-1", {"ssh_password": "theirs"})], "by ssh with a key, and not gpu-1"),
    ],
)
def test_what_cannot_be_tested_is_refused(
    tmp_path: Path,
    services: dict[str, Any],
    hosts: list[tuple[str, dict[str, Any]]],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inventory = write(tmp_path, services, hosts)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(own.Unusable) as refused:
        own_settings.describe(str(inventory))
    assert said in str(refused.value)
    assert "theirs" not in str(refused.value)


def test_an_error_in_the_settings_and_a_missing_secret_are_said_as_a_deploy_says_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = why_not(write(tmp_path, {"chat": service(nonsense=2)}))
    assert "services.chat.args.nonsense" in said
    assert "Traceback" not in said
    monkeypatch.delenv("CHAT_KEY")
    assert "CHAT_KEY is not set" in why_not(write(tmp_path, {"chat": service()}))


def test_what_is_no_inventory_is_refused(tmp_path: Path) -> None:
    said = "HOST is the path of an inventory file, such as fleet/inventory/prod.py, and"
    assert why_not(tmp_path / "none.py") == f"{said} {tmp_path}/none.py is not there"
    assert why_not(tmp_path) == f"{said} {tmp_path} is no file"
    assert why_not("") == f"{said} it is empty"
    alone = tmp_path / "alone.py"
    alone.touch()
    assert "is no inventory in a deployment folder" in why_not(alone)
