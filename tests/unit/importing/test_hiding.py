"""A secret that stands elsewhere too is hidden there, and named."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sglang_fleet.importing.hiding import hidden
from tests.unit.importing.support import imported, notes, only

POISON = "poison-5ecret"
SERVER = "python3 -m sglang.launch_server --model-path /m"

REPEATED = {
    "the name": (f"{SERVER} --served-model-name {POISON} --api-key {POISON}", "run.sh"),
    "a description": (
        f"[Unit]\nDescription=key {POISON}\n[Service]\nExecStart=/v/{SERVER} --api-key {POISON}\n",
        "x.service",
    ),
    "another argument": (f"{SERVER} --api-key {POISON} --chat-template /t/{POISON}", "run.sh"),
    "a flag that nobody knows": (f"{SERVER} --api-key {POISON} --frobnicate {POISON}", "run.sh"),
    "a variable": (f"A={POISON} HF_TOKEN={POISON} {SERVER}", "run.sh"),
    "a list": (f"{SERVER} --api-key {POISON} --lora-paths a={POISON} b", "run.sh"),
    "a variable that the server does not get": (f"MY_TOKEN={POISON}\n{SERVER} --log-level {POISON}", "run.sh"),
    "a container's name": (f"docker run --name {POISON} -e HF_TOKEN={POISON} img {SERVER}", "run.sh"),
    "a folder": (
        f"[Service]\nWorkingDirectory=/x/{POISON}\nExecStart=/v/{SERVER} --api-key {POISON}\n",
        "x.service",
    ),
    "NCCL": (f"NCCL_SOCKET_IFNAME={POISON} HF_TOKEN={POISON} {SERVER}", "run.sh"),
    "a note": (f"{SERVER} --api-key {POISON} --tp-size {POISON}\nfrobnicate {POISON}", "run.sh"),
    "a variable's name in a unit": (
        f"[Service]\nEnvironment=API_TOKEN={POISON}\nSlice={POISON}\nExecStart=/v/{SERVER}\n",
        "x.service",
    ),
}


@pytest.mark.parametrize(("text", "source"), REPEATED.values(), ids=REPEATED.keys())
def test_a_secret_that_stands_elsewhere_too_is_hidden_there(text: str, source: str) -> None:
    found = imported(text, source)
    everything = found.yaml + json.dumps(found.settings) + repr(found.notes)
    assert POISON not in everything
    assert POISON.upper().replace("-", "_") not in everything
    assert YAML(typ="safe", pure=True).load(found.yaml) == found.settings


def test_what_was_hidden_is_named_with_its_line() -> None:
    found = imported(f"{SERVER} \\\n --served-model-name {POISON} \\\n --api-key {POISON}")
    assert only(found)["args"]["served_model_name"] == "•••"
    assert "2: args.served_model_name held a secret, and is ••• now: write another value" in notes(found)


@pytest.mark.parametrize("value", ["EMPTY", "none", "true"])
def test_a_word_that_is_no_secret_is_not_hidden_everywhere(value: str) -> None:
    found = imported(f"{SERVER} --grammar-backend {value} --api-key {value}")
    assert only(found)["args"]["grammar_backend"] in (value, True)


def test_an_address_with_a_login_in_a_note_is_hidden() -> None:
    found = imported(f"docker run -v https://u:{POISON}@h/x:/m img {SERVER}")
    assert POISON not in found.yaml


def test_a_secret_of_another_service_is_known_too() -> None:
    text = (
        f"services:\n  web:\n    command: web\n    environment: {{WEB_TOKEN: {POISON}}}\n"
        f"  a:\n    command: {SERVER} --served-model-name {POISON}\n"
    )
    assert POISON not in imported(text, "c.yml").yaml


@settings(max_examples=50)
@given(st.text(min_size=4), st.text(), st.text())
def test_no_known_value_stays_in_a_text(value: str, before: str, after: str) -> None:
    assume(hidden(value, {value}) != value)  # such as null, which stands for no secret
    assert value not in hidden(f"{before}{value}{after}", {value}).replace("•••", "") or value in "•••"
