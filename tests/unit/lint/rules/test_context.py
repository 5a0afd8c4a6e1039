import json
from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

LONG = ModelFacts(context_length=131072)
STRETCH = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"
OVERRIDE = "json_model_override_args"
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL212", "context_length", args={"context_length": 262144}, model=LONG, words="the model's 131072"),
        finds("SGL212", "context_length", args={"context_length": 131073}, model=LONG, environment={STRETCH: "0"}),
        finds("SGL213", "max_total_tokens", args={"max_total_tokens": 8192, "context_length": 32768}),
        finds("SGL213", "max_total_tokens", args={"max_total_tokens": 8192}, model=LONG, words="the model's context"),
        finds("SGL219", OVERRIDE, args={OVERRIDE: {"rope_scaling": YARN}}, words="by 4"),
        finds("SGL219", OVERRIDE, args={OVERRIDE: json.dumps({"rope_scaling": YARN})}, version="0.5.9"),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL212", args={"context_length": 131072}, model=LONG),
        passes("SGL212", args={"context_length": 262144}, model=LONG, environment={STRETCH: "1"}),
        passes("SGL212", args={"context_length": 262144, "json_model_override_args": "{}"}, model=LONG),
        passes("SGL212", args={"context_length": 262144}, model=ModelFacts()),
        passes("SGL212", args={"context_length": 262144}),
        passes("SGL213", args={"max_total_tokens": 32768, "context_length": 32768}),
        passes("SGL213", args={"max_total_tokens": 100}),
        passes("SGL213", args={"max_total_tokens": 100}, model=ModelFacts()),
        passes("SGL213", args={"max_total_tokens": 131072}, model=LONG),
        passes("SGL213", args={"max_total_tokens": 8192, "context_length": 4096}, model=LONG),
        passes("SGL213", args={"max_total_tokens": 8192, OVERRIDE: {"max_position_embeddings": 4096}}, model=LONG),
        passes("SGL219", args={OVERRIDE: {"rope_scaling": YARN}, "context_length": 131072}),
        passes("SGL219", args={OVERRIDE: {"rope_scaling": YARN, "max_position_embeddings": 131072}}),
        passes("SGL219", args={OVERRIDE: {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}}),
        passes("SGL219", args={OVERRIDE: {"rope_scaling": {**YARN, "factor": 1.0}}}),
        passes("SGL219", args={OVERRIDE: {"rope_scaling": None}}),
        passes("SGL219", args={OVERRIDE: {"num_hidden_layers": 4}}),
        passes("SGL219", args={OVERRIDE: "{"}),
        passes("SGL219", args={OVERRIDE: "[]"}),
        passes("SGL219", args={}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
