from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

HYBRID = ModelFacts(recurrent="layer_types")


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL201", "disable_cuda_graph", args={"disable_cuda_graph": True}),
        finds("SGL201", "disable_cuda_graph", args={"disable_cuda_graph": True}, version="0.5.9"),
        finds("SGL201", "disable_decode_cuda_graph", args={"disable_decode_cuda_graph": True}),
        finds("SGL201", "cuda_graph_backend_decode", args={"cuda_graph_backend_decode": "disabled"}),
        finds("SGL201", "cuda_graph_config", args={"cuda_graph_config": {"decode": {"backend": "disabled"}}}),
        finds("SGL201", "cuda_graph_config", args={"cuda_graph_config": '{"decode": {"backend": "disabled"}}'}),
        finds("SGL202", "attention_backend", args={"attention_backend": "torch_native"}),
        finds("SGL202", "attention_backend", args={"attention_backend": "flex_attention"}, version="0.5.9"),
        finds(
            "SGL202",
            "prefill_attention_backend",
            args={"prefill_attention_backend": "torch_native", "decode_attention_backend": "torch_native"},
        ),
        finds("SGL202", "deepep_mode", args={"deepep_mode": "normal", "moe_a2a_backend": "deepep", "tp_size": 8}),
        finds(
            "SGL203",
            "cuda_graph_max_bs",
            args={"cuda_graph_max_bs": 16, "max_running_requests": 64},
            version="0.5.16",
            words="up to 64",
        ),
        finds("SGL203", "cuda_graph_max_bs_decode", args={"cuda_graph_max_bs_decode": 16, "max_running_requests": 64}),
        finds("SGL203", "cuda_graph_bs_decode", args={"cuda_graph_bs_decode": [1, 2, 4], "max_running_requests": 64}),
        finds(
            "SGL203",
            "cuda_graph_config",
            args={"cuda_graph_config": {"decode": {"max_bs": 8}}, "max_running_requests": 64},
        ),
        finds(
            "SGL203",
            "cuda_graph_max_bs_decode",
            args={"cuda_graph_max_bs_decode": 4, "max_running_requests": 64, "pp_size": 8},
            words="up to 8 run",
        ),
        finds(
            "SGL204",
            "disable_cuda_graph_padding",
            args={"disable_cuda_graph_padding": True, "enable_torch_compile": True},
        ),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL201", args={}),
        passes("SGL201", args={"disable_cuda_graph": False}),
        passes("SGL201", args={"disable_cuda_graph": True, "disaggregation_mode": "prefill"}),
        passes("SGL201", args={"disable_cuda_graph": True, "cuda_graph_backend_decode": "full"}),
        passes("SGL201", args={"cuda_graph_backend_prefill": "disabled"}),
        passes("SGL201", args={"disable_prefill_cuda_graph": True}),
        passes(
            "SGL201",
            args={"cuda_graph_backend_decode": "disabled", "cuda_graph_config": {"decode": {"backend": "full"}}},
        ),
        passes("SGL201", args={"cuda_graph_config": {"prefill": {"backend": "disabled"}}}),
        passes("SGL202", args={"attention_backend": "triton"}),
        passes("SGL202", args={"attention_backend": "torch_native", "device": "cpu"}),
        passes("SGL202", args={"deepep_mode": "auto", "moe_a2a_backend": "deepep", "tp_size": 8}),
        passes("SGL202", args={"deepep_mode": "normal"}),
        passes("SGL203", args={"cuda_graph_max_bs_decode": 64, "max_running_requests": 64}),
        passes("SGL203", args={"cuda_graph_max_bs_decode": 8, "max_running_requests": 64, "pp_size": 8}),
        passes(
            "SGL203", args={"cuda_graph_max_bs_decode": 8, "max_running_requests": 64, "tp_size": 8, "attn_dp_size": 8}
        ),
        passes("SGL203", args={"cuda_graph_max_bs_decode": 8}),
        passes("SGL203", args={"cuda_graph_max_bs_decode": 8, "max_running_requests": 64}, model=HYBRID),
        passes("SGL203", args={"max_running_requests": 512}),
        passes("SGL203", args={"cuda_graph_max_bs_decode": 8, "max_running_requests": 64, "disable_cuda_graph": True}),
        passes(
            "SGL204",
            args={"disable_cuda_graph_padding": True, "enable_torch_compile": True},
            version="0.5.11",
        ),
        passes("SGL204", args={"enable_torch_compile": True}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


def test_removing_the_switch_takes_a_decision() -> None:
    (found,) = ask("SGL201", view({"disable_cuda_graph": True}))
    assert found.edits
    assert not found.safe
