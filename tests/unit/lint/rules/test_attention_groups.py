from typing import Any

import pytest

from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import applied, ask, view


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL105", "attn_dp_size", args={"tp_size": 8, "attn_dp_size": 3}),
        finds("SGL105", "dp_size", args={"tp_size": 8, "dp_size": 3, "enable_dp_attention": True}),
        finds("SGL105", "dp_size", args={"tp_size": 8, "dp_size": 3, "enable_dp_attention": True}, version="0.5.9"),
        finds("SGL106", "dp_size", args={"tp_size": 8, "dp_size": 2, "attn_dp_size": 4}),
        finds("SGL107", "enable_dp_attention", args={"tp_size": 8, "enable_dp_attention": True}),
        finds("SGL107", "enable_dp_attention", args={"enable_dp_attention": True}, version="0.5.9"),
        finds("SGL108", "enable_dp_attention", args={"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}),
        finds("SGL117", "enable_dp_lm_head", args={"dp_size": 2, "enable_dp_lm_head": True}),
        finds("SGL118", "enable_dp_lm_head", args={"tp_size": 8, "enable_dp_lm_head": True}),
        finds(
            "SGL118",
            "enable_dp_lm_head",
            args={"tp_size": 8, "enable_dp_attention": True, "enable_dp_lm_head": True},
            version="0.5.9",
        ),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL105", args={"tp_size": 8, "attn_dp_size": 4}),
        passes("SGL105", args={"tp_size": 8, "dp_size": 3}),
        passes("SGL106", args={"tp_size": 8, "attn_dp_size": 4}),
        passes("SGL106", args={"tp_size": 1, "dp_size": 4}),
        passes("SGL107", args={"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}),
        passes("SGL107", args={"tp_size": 8, "enable_dp_attention": False}),
        passes("SGL108", args={"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}, version="0.5.21"),
        passes("SGL108", args={"tp_size": 8, "attn_dp_size": 8}),
        passes("SGL117", args={"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "enable_dp_lm_head": True}),
        passes("SGL117", args={"dp_size": 2}),
        passes("SGL117", args={"tp_size": 8, "enable_dp_lm_head": True}),
        passes("SGL118", args={"tp_size": 8, "attn_dp_size": 8, "enable_dp_lm_head": True}),
        passes("SGL118", args={"dp_size": 2, "enable_dp_lm_head": True}),
        passes("SGL118", args={"tp_size": 8}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


def test_the_old_spelling_of_dp_attention_becomes_the_new_one() -> None:
    one = view({"tp_size": 8, "dp_size": 8, "enable_dp_attention": True})
    (found,) = ask("SGL108", one)
    assert applied(found, one) == {"model_path": "/models/model", "tp_size": 8, "attn_dp_size": 8}
    assert found.safe
