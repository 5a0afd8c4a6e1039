from typing import Any

import pytest

from sglang_fleet.catalog import catalogue, versions
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import applied, ask, view


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL004", "disable_fast_image_processor", args={"disable_fast_image_processor": True}),
        finds("SGL004", "cuda_graph_max_bs", args={"cuda_graph_max_bs": 32}, version="0.5.16"),
        finds("SGL008", "tool_call_parser", args={"tool_call_parser": "qwen25"}, version="0.5.9"),
        finds("SGL008", "attention_backend", args={"attention_backend": "compressed"}),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL004", args={"disable_fast_image_processor": False}),
        passes("SGL004", args={"cuda_graph_max_bs": 32}, version="0.5.13"),
        passes("SGL004", args={"tp_size": 2}),
        passes("SGL004", args={"disable_cuda_graph": True}),
        passes("SGL004", args={"enable_dp_attention": True}),
        passes("SGL008", args={"tool_call_parser": "kimi_k2"}),
        passes("SGL008", args={"attention_backend": "compressed"}, version="0.5.22"),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


@pytest.mark.parametrize(
    ("args", "version", "after"),
    [
        ({"cuda_graph_max_bs": 32}, "0.5.16", {"cuda_graph_max_bs_decode": 32}),
        ({"stream_output": True}, "0.5.16", {"incremental_streaming_output": True}),
        ({"disable_fast_image_processor": True}, "0.5.23", {"image_processor_backend": "pil"}),
        (
            {"enable_flashinfer_allreduce_fusion": True},
            "0.5.23",
            {"flashinfer_allreduce_fusion_backend": "auto"},
        ),
    ],
)
def test_two_names_of_one_setting_are_exchanged(args: dict[str, Any], version: str, after: dict[str, Any]) -> None:
    one = view(args, version=version)
    (found,) = ask("SGL004", one)
    assert found.safe
    assert applied(found, one) == {"model_path": "/models/model", **after}


@pytest.mark.parametrize(
    ("args", "version"),
    [
        ({"disable_piecewise_cuda_graph": True}, "0.5.16"),
        ({"enable_prefill_context_parallel": True}, "0.5.16"),
        ({"cuda_graph_max_bs": 32, "cuda_graph_max_bs_decode": 64}, "0.5.16"),
        ({"disable_fast_image_processor": True, "image_processor_backend": "auto"}, "0.5.23"),
    ],
)
def test_what_is_not_certainly_the_same_is_left_alone(args: dict[str, Any], version: str) -> None:
    (found,) = ask("SGL004", view(args, version=version))
    assert not found.edits
    assert not found.safe
    assert found.fix


@pytest.mark.parametrize("version", versions())
def test_every_change_offered_is_one_that_the_release_takes(version: str) -> None:
    known = catalogue(version)
    for argument in known.arguments:
        if argument.deprecated is not None and argument.kind in ("flag", "int"):
            one = view({argument.name: True if argument.kind == "flag" else 8}, version=version)
            for found in [found for found in ask("SGL004", one) if found.edits]:
                for name, value in applied(found, one).items():
                    assert known.check(name, value) is None
