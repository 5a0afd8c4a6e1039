from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.lint.rules import RULES
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import applied, ask, view

DEPTH, SIZE = "pp_async_batch_depth", "pp_max_micro_batch_size"


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL120", DEPTH, args={DEPTH: 8}),
        finds("SGL120", DEPTH, args={DEPTH: 0, "pp_size": 1}),
        finds("SGL121", DEPTH, args={"pp_size": 8}, words="never a single one"),
        finds("SGL121", DEPTH, args={"pp_size": 8}, version="0.5.7"),
        finds("SGL122", DEPTH, args={"pp_size": 8, DEPTH: 8}, words="wrong answers"),
        finds("SGL123", SIZE, args={"pp_size": 8, "max_running_requests": 64}, words="up to 8 requests"),
        finds("SGL123", SIZE, args={"pp_size": 4}, words="max_running_requests / 4"),
        finds("SGL124", SIZE, args={"pp_size": 8, SIZE: 1, "max_running_requests": 64}, words="lets 8 requests"),
        finds("SGL124", SIZE, args={"pp_size": 8, SIZE: 1, DEPTH: 8, "max_running_requests": 64}, words="lets 16"),
        finds("SGL125", SIZE, args={"pp_size": 8, SIZE: 64, "max_running_requests": 64}, words="other 7 wait"),
        finds("SGL126", "max_running_requests", args={"pp_size": 8, "max_running_requests": 4}, words="4 of 8 stages"),
        finds("SGL127", SIZE, args={SIZE: 8, "max_running_requests": 64}, words="to 8 running"),
        finds("SGL127", SIZE, args={SIZE: 8}, version="0.5.9"),
        finds("SGL128", "enable_dynamic_chunking", args={"enable_dynamic_chunking": True}),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL120", args={"pp_size": 8, DEPTH: 8}),
        passes("SGL120", args={"pp_size": 1}),
        passes("SGL121", args={"pp_size": 8, DEPTH: 0}),
        passes("SGL121", args={"pp_size": 8, DEPTH: 1}),
        passes("SGL121", args={"pp_size": 8}, version="0.5.6"),
        passes("SGL121", args={"tp_size": 8}),
        passes("SGL122", args={"pp_size": 8, DEPTH: 1}),
        passes("SGL122", args={DEPTH: 8}),
        passes("SGL123", args={"pp_size": 8, SIZE: 8}),
        passes("SGL123", args={"pp_size": 8, "max_running_requests": 8}),
        passes("SGL123", args={"max_running_requests": 64}),
        passes("SGL124", args={"pp_size": 8, SIZE: 8, "max_running_requests": 64}),
        passes("SGL124", args={"pp_size": 8, SIZE: 1}),
        passes("SGL125", args={"pp_size": 8, SIZE: 8, "max_running_requests": 64}),
        passes("SGL125", args={"pp_size": 8, SIZE: 1, "max_running_requests": 1}),
        passes("SGL126", args={"pp_size": 8, "max_running_requests": 8}),
        passes("SGL126", args={"max_running_requests": 1}),
        passes("SGL127", args={SIZE: 64, "max_running_requests": 64}),
        passes("SGL127", args={"pp_size": 2, SIZE: 8, "max_running_requests": 64}),
        passes("SGL128", args={"pp_size": 2, "enable_dynamic_chunking": True}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


def test_what_the_old_unit_of_the_story_gets() -> None:
    args: dict[str, Any] = {
        "port": 30001,
        "tp_size": 1,
        "pp_size": 8,
        "mem_fraction_static": 0.88,
        "context_length": 32768,
        "max_running_requests": 64,
        "attention_backend": "triton",
        "trust_remote_code": True,
        "grammar_backend": "none",
        "disable_cuda_graph": True,
    }
    one = view(args, nccl={"p2p_level": 5, "algo": "Ring", "ib_disable": True})
    found = {
        rule.id: found
        for rule in RULES
        if rule.subject == "service" and rule.needs == "settings" and rule.id < "SGL5"
        for found in rule.check(one)
    }
    assert list(found) == ["SGL121", "SGL123", "SGL201"]
    assert not any(one.safe for one in found.values())
    for name in ("SGL121", "SGL201"):
        args = applied(found[name], view(args))
    assert args.pop("model_path")
    assert args["pp_async_batch_depth"] == 1
    assert "disable_cuda_graph" not in args


@pytest.mark.parametrize(("depth", "places"), [({}, 4), ({DEPTH: 2}, 6)])
def test_the_size_that_is_advised_fills_the_places_of_the_depth_too(depth: dict[str, Any], places: int) -> None:
    for rule, more in {"SGL123": {}, "SGL125": {SIZE: 8, "max_running_requests": 8}}.items():
        (found,) = ask(rule, view({"pp_size": 4, **depth, **more}))
        assert f"divided by {places}," in found.fix


@given(stages=st.integers(2, 16), depth=st.integers(0, 8), size=st.integers(1, 64), running=st.integers(1, 512))
def test_a_size_cannot_be_both_too_small_and_too_large(stages: int, depth: int, size: int, running: int) -> None:
    one = view({"pp_size": stages, DEPTH: depth, SIZE: size, "max_running_requests": running})
    assert len(ask("SGL124", one)) + len(ask("SGL125", one)) <= 1
