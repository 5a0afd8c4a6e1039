from typing import Any

import pytest

from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

V2 = "SGLANG_ENABLE_SPEC_V2"
EAGLE = {"speculative_algorithm": "EAGLE"}
TREE = {**EAGLE, "speculative_num_steps": 5, "speculative_eagle_topk": 8, "speculative_num_draft_tokens": 32}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL340", "environment.SGL_ENABLE_JIT_DEEPGEMM", environment={"SGL_ENABLE_JIT_DEEPGEMM": "0"}),
        finds("SGL341", f"environment.{V2}", environment={V2: "1"}, version="0.5.14", words="SGLang 0.5.14"),
        finds("SGL342", "speculative_algorithm", args=EAGLE, version="0.5.10"),
        finds("SGL343", "speculative_eagle_topk", args=TREE, environment={V2: "True"}, version="0.5.10"),
        finds("SGL343", "speculative_eagle_topk", args=TREE, environment={V2: "True"}, version="0.5.7"),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL340", environment={"SGLANG_ENABLE_JIT_DEEPGEMM": "0", "MY_SGL_X": "1"}),
        passes("SGL341", environment={V2: "1"}, version="0.5.13"),
        passes("SGL341", environment={"SGLANG_CACHE_DIR": "/x"}),
        passes("SGL342", args=EAGLE, version="0.5.11"),
        passes("SGL342", args=EAGLE, version="0.5.10", environment={V2: "1"}),
        passes("SGL342", args=TREE, version="0.5.10"),
        passes("SGL342", version="0.5.10"),
        passes("SGL343", args=TREE, environment={V2: "1"}, version="0.5.11"),
        passes("SGL343", args=TREE, environment={V2: "1"}, version="0.5.6"),
        passes("SGL343", args=TREE, environment={V2: "0"}, version="0.5.10"),
        passes("SGL343", args={**TREE, "speculative_eagle_topk": 1}, environment={V2: "1"}, version="0.5.10"),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


def test_a_new_name_that_is_there_is_not_overwritten() -> None:
    (found,) = ask("SGL340", view(environment={"SGL_X": "0", "SGLANG_X": "1"}))
    assert not found.edits
    assert not found.safe
