from typing import Any

import pytest

from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

EAGLE = {"speculative_algorithm": "EAGLE"}
SIZES = {"max_lora_rank": 16, "lora_target_modules": ["all"]}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL427", "speculative_algorithm", args={**EAGLE, "enable_lora": True}, version="0.5.9"),
        finds("SGL427", "speculative_algorithm", args={**EAGLE, "lora_paths": ["a=/l/a"]}, version="0.5.18"),
        finds(
            "SGL427",
            "speculative_algorithm",
            args={**EAGLE, "lora_paths": ["a=/l/a"], "enable_lora": False},
            version="0.5.9",
        ),
        finds("SGL427", "speculative_algorithm", args={"speculative_algorithm": "STANDALONE", "enable_lora": True}),
        finds("SGL429", "enable_lora", args={"enable_lora": True}),
        finds("SGL429", "enable_lora", args={"enable_lora": True, "max_lora_rank": 16}, version="0.5.5"),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL427", args={**EAGLE, "enable_lora": True}),
        passes("SGL427", args={"speculative_algorithm": "NGRAM", "enable_lora": True}, version="0.5.9"),
        passes("SGL427", args=EAGLE, version="0.5.9"),
        passes("SGL427", args={"enable_lora": True}, version="0.5.9"),
        passes("SGL427", args={**EAGLE, "enable_lora": True}, version="0.5.5"),
        passes("SGL429", args={"enable_lora": True, **SIZES}),
        passes("SGL429", args={"enable_lora": True, "lora_paths": ["a=/l/a"]}),
        passes("SGL429", args={"lora_paths": []}),
        passes("SGL429", args={}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
