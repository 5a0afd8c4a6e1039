"""No secret comes out: not in the YAML, not in a note, not in an error."""

from __future__ import annotations

import json

import pytest

from sglang_fleet.importing import UnreadableError
from sglang_fleet.importing.secrets import holds_secret
from tests.unit.importing.support import imported, notes, only

POISON = "poison-5ecret"
SERVER = "python3 -m sglang.launch_server --model-path /m"
COMPOSE = (
    "services:\n  a:\n    image: sglang\n    command: --model-path m --api-key {0}\n"
    "    environment: {{HF_TOKEN: {0}}}\n"
)

SOURCES = {
    "an argument": (f"{SERVER} --api-key {POISON}", "run.sh"),
    "an argument with =": (f"{SERVER} --api-key={POISON} --admin-api-key={POISON}", "run.sh"),
    "a shortened argument": (f"{SERVER} --admin-api {POISON}", "run.sh"),
    "an unknown argument": (f"{SERVER} --hf-token {POISON}", "run.sh"),
    "several words": (f"{SERVER} --api-key {POISON} {POISON}-2", "run.sh"),
    "variables": (f"export HF_TOKEN={POISON} myPassword={POISON}\n{SERVER}", "run.sh"),
    "a variable that is an argument": (f"KEY={POISON}\n{SERVER} --api-key $KEY", "run.sh"),
    "a unit": (f"[Service]\nEnvironment=HF_TOKEN={POISON}\nExecStart=/v/{SERVER} --api-key {POISON}\n", "x.service"),
    "commands of a unit": (
        f"[Service]\nExecStartPre=/x {POISON}\nExecStart=/v/{SERVER}\nExecStop=/y {POISON}\n",
        "x.service",
    ),
    "docker": (f"docker login -p {POISON}\ndocker run -e HF_TOKEN={POISON} --label k={POISON} img {SERVER}", "run.sh"),
    "compose": (COMPOSE.format(POISON), "c.yml"),
    "an address": (f'{SERVER} --hicache-storage-backend-extra-config \'{{"url": "http://u:{POISON}@h"}}\'', "run.sh"),
    "JSON": (f'{SERVER} --json-model-override-args \'{{"auth_token": "{POISON}"}}\'', "run.sh"),
    "an address in a variable": (f"HTTPS_PROXY=http://u:{POISON}@proxy:1 {SERVER}", "run.sh"),
    "other commands": (f"curl -H 'X: {POISON}' h\nmycli {POISON}\nexport X_TOKEN={POISON}\n{SERVER}", "run.sh"),
}


@pytest.mark.parametrize(("text", "source"), SOURCES.values(), ids=SOURCES.keys())
def test_a_secret_is_nowhere_in_what_comes_out(text: str, source: str) -> None:
    found = imported(text, source)
    everything = found.yaml + json.dumps(found.settings) + repr(found.notes)
    assert POISON not in everything
    assert "•••" not in everything  # nothing wrote it, so that nothing had to hide it


@pytest.mark.parametrize("login", [f"https://user:{POISON}@hub/m", f"https://{POISON}@hub/m"])
def test_an_argument_that_holds_a_login_keeps_the_rest_of_its_address(login: str) -> None:
    found = imported(f"python3 -m sglang.launch_server --model-path {login} --port 1")
    assert only(found)["args"]["model_path"] == "https://•••@hub/m"
    assert "names no model" not in notes(found)
    assert "1: --model-path holds a login, which is ••• now" in notes(found)
    assert POISON not in found.yaml


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"[Service]\nExecStart=/x --api-key '{POISON}\n", 2),
        (f"[Service]\nEnvironment='K={POISON}\nExecStart=/x\n", 2),
        (f"[Service]\nExecStart={POISON} serve\n", 2),
        (f"KEY='{POISON}\n", 1),
        (f"services:\n  a: [{POISON}\n", 3),
        (f"services:\n  a: *{POISON}\n", 2),
        (f"services:\n  a:\n    HF_TOKEN: x\n    HF_TOKEN: {POISON}\n", 4),
        (f"HF_TOKEN={POISON} ./{POISON}\n", 1),
        (f"[Service]\nEnvironment=HF_TOKEN={POISON}\nExecStart=/x/{POISON}\n", 3),
    ],
)
def test_a_secret_is_in_no_error(text: str, line: int) -> None:
    source = "x.service" if text.startswith("[") else "c.yml" if text.startswith("s") else "run.sh"
    with pytest.raises(UnreadableError) as error:
        imported(text, source)
    assert error.value.line == line
    assert POISON not in error.value.message or text.startswith(f"[Service]\nExecStart={POISON}")


def test_each_secret_is_named_with_where_to_put_it() -> None:
    found = imported(f"HF_TOKEN=x123 {SERVER} --served-model-name k26 --api-key abcd", "run.sh")
    assert only(found)["secrets"] == {"api_key": {"env": "K26_API_KEY"}, "HF_TOKEN": {"env": "HF_TOKEN"}}
    assert "export K26_API_KEY on the controller" in notes(found)
    assert "export K26_API_KEY" in found.yaml.replace("\n#    ", "")


def test_a_secret_that_came_from_outside_keeps_its_name() -> None:
    found = imported(f"{SERVER} --api-key $SGLANG_KEY")
    assert only(found)["secrets"] == {"api_key": {"env": "SGLANG_KEY"}}


def test_an_empty_secret_is_none() -> None:
    assert "secrets" not in only(imported(f"HF_TOKEN= {SERVER} --api-key ''"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("http://host:80/x", False),
        ("http://user:pass@host", True),
        ('{"image_token_id": 5, "a": {"b": [1]}}', False),
        ('{"a": [{"password": "x"}]}', True),
        ('{"password": ""}', False),
        ("plain text", False),
        ("{not json", False),
    ],
)
def test_values_that_hold_a_secret(value: str, *, expected: bool) -> None:
    assert holds_secret(value) is expected
