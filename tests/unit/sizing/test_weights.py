from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.models import parse_facts
from sglang_fleet.models.weights import Layer, Weights
from sglang_fleet.sizing import lay_out
from sglang_fleet.sizing.estimate import estimated
from sglang_fleet.sizing.weights import on_gpu
from tests.unit.sizing import known_models as known

GIB = 1 << 30
FACTS = parse_facts(known.LLAMA_8B | {"num_hidden_layers": 4}, weight_bytes=None)
LAYER = Layer(attention=800, kv_heads=160, dense=1600, experts=64000, replicated=7)
WEIGHTS = Weights((LAYER,) * 4, embedding=4000, head=8000, rest=5, source="headers")


def held(weights: Weights = WEIGHTS, **args: object) -> tuple[int, ...]:
    return on_gpu(weights, FACTS, lay_out(4, args))


def estimate(config: dict[str, Any], weight_bytes: int | None = None) -> Weights:
    found = estimated(parse_facts(config, weight_bytes=weight_bytes))
    assert found is not None
    return found


def test_one_gpu_holds_everything() -> None:
    assert held() == (WEIGHTS.total,) == (4 * (800 + 160 + 1600 + 64000 + 7) + 4000 + 8000 + 5,)


def test_the_first_stage_has_the_embedding_and_the_last_the_output_layer() -> None:
    layer = 800 + 160 + 1600 + 64000 + 7
    assert held(pp_size=3) == (layer + 4000 + 5, layer + 5, 2 * layer + 8000 + 5)


def test_a_tied_embedding_is_needed_again_on_the_last_stage() -> None:
    tied = replace(WEIGHTS, head=0)
    assert held(tied) == (WEIGHTS.total - 8000,)
    assert held(tied, pp_size=4)[-1] == held(pp_size=4)[-1] - 4000


def test_tensor_parallelism_repeats_kv_heads_beyond_their_number_and_what_is_whole() -> None:
    assert held(tp_size=16) == (4 * (50 + 20 + 100 + 4000 + 7) + 250 + 500 + 5,)


def test_data_parallel_attention_keeps_attention_whole_and_splits_experts() -> None:
    assert held(tp_size=8, attn_dp_size=8) == (4 * (800 + 160 + 200 + 8000 + 7) + 4000 + 1000 + 5,)
    assert held(tp_size=8, attn_dp_size=8, moe_dense_tp_size=1)[0] - held(tp_size=8, attn_dp_size=8)[0] == 4 * 1400


def test_spare_experts_take_room() -> None:
    facts = replace(FACTS, num_experts=64)
    layout = lay_out(4, {"tp_size": 8, "ep_size": 8, "ep_num_redundant_experts": 8})
    assert on_gpu(WEIGHTS, facts, layout)[0] - held(tp_size=8)[0] == 4 * 1000


@pytest.mark.parametrize(
    ("config", "args", "gib", "tolerance"),
    [
        # "Load weight end … mem usage": sglang PR 4760 and another log, Llama 3.1 8B: 15.11 and 15.02 GB.
        (known.LLAMA_8B, {}, 15.02, 0.01),
        # A log of Kimi K2.5, tp 8: 73.58 GB, with its image encoder of 0.9.
        (known.KIMI_K25, {"tp_size": 8}, 73.58, 0.04),
        # vllm issue 21348, Qwen3-235B-A22B-FP8 on 4 x H100 (79.6 GiB) with 0.93: 16.46 GB were left for the cache.
        (known.QWEN_235B_FP8, {"tp_size": 4}, (79.6 - 2) * 0.93 - 16.46, 0.02),
    ],
)
def test_weights_of_a_gpu_as_servers_logged_them(
    config: dict[str, Any], args: dict[str, object], gib: float, tolerance: float
) -> None:
    facts = parse_facts(config, weight_bytes=None)
    found = on_gpu(estimate(config), facts, lay_out(facts.num_hidden_layers or 0, args))
    assert max(found) / GIB == pytest.approx(gib, rel=tolerance)


@pytest.mark.parametrize(
    ("config", "billions", "bits"),
    [
        (known.LLAMA_8B, 8.03, 16),
        (known.LLAMA_70B, 70.6, 16),
        (known.LLAMA_405B, 405.9, 16),
        (known.QWEN_235B_FP8, 235.1, 8),
        (known.DEEPSEEK_V3, 671, 8),
    ],
)
def test_parameters_as_published(config: dict[str, Any], billions: float, bits: int) -> None:
    assert estimate(config).total * 8 / bits / 1e9 == pytest.approx(billions, rel=0.01)


def test_kimi_k2_in_four_bits_has_594_gb() -> None:
    assert estimate(known.KIMI_K25).total / 1e9 == pytest.approx(594, rel=0.01)


def test_a_tied_embedding_is_there_once() -> None:
    tied = estimate(known.LLAMA_8B | {"tie_word_embeddings": True})
    assert (tied.head, estimate(known.LLAMA_8B).head) == (0, tied.embedding)


@pytest.mark.parametrize("setting", ["mamba_d_state", "num_kv_shared_layers"])
def test_layers_of_other_shapes_are_not_guessed(setting: str) -> None:
    assert estimated(parse_facts(known.LLAMA_8B | {setting: 16}, weight_bytes=None)) is None


def test_known_bytes_are_shared_out_without_the_layers_that_are_not_loaded() -> None:
    total = 688_000_000_000  # with one layer of multi-token prediction of about 11 GB
    found = estimate(known.DEEPSEEK_V3, total)
    assert found.source == "index"
    assert found.total == pytest.approx(total - 11.5e9, rel=0.005)
    without = estimate(known.DEEPSEEK_V3 | {"num_nextn_predict_layers": 0}, total)
    assert without.total == pytest.approx(total, rel=1e-6)


@pytest.mark.parametrize(
    "lacking", ["hidden_size", "vocab_size", "num_hidden_layers", "intermediate_size", "v_head_dim"]
)
def test_shapes_that_are_lacking_are_not_guessed(lacking: str) -> None:
    assert estimated(parse_facts(known.DEEPSEEK_V3 | {lacking: None}, weight_bytes=None)) is None


@pytest.mark.parametrize(
    ("pattern", "is_smaller"),
    [
        ("re:.*self_attn.*", False),
        ("model.layers.0.self_attn", False),
        ("model.layers.*.self_attn", False),
        ("self_attn", False),
        ("re:[", True),
        ("lm_head", True),
    ],
)
def test_modules_that_are_not_quantized_keep_their_size(pattern: str, *, is_smaller: bool) -> None:
    quantization = {"quant_method": "compressed-tensors", "bits": 4, "group_size": 32, "ignore": [pattern]}
    plain, found = estimate(known.LLAMA_8B), estimate(known.LLAMA_8B | {"quantization_config": quantization})
    assert (found.layers[0].attention < plain.layers[0].attention) is is_smaller
    assert found.layers[0].dense == plain.layers[0].dense * 9 // 32  # four bits, and half a bit of scale


WIDTHS = st.sampled_from([1, 2, 4, 8, 16])


@given(tensor=WIDTHS, more=WIDTHS, pipeline=st.integers(1, 8), kv_heads=st.sampled_from([1, 2, 8, 32]))
def test_more_gpus_never_give_one_of_them_more(tensor: int, more: int, pipeline: int, kv_heads: int) -> None:
    config = known.LLAMA_8B | {"num_key_value_heads": kv_heads, "num_hidden_layers": 30}
    facts, weights = parse_facts(config, weight_bytes=None), estimate(config)

    def fullest(tensor: int, pipeline: int) -> int:
        return max(on_gpu(weights, facts, lay_out(30, {"tp_size": tensor, "pp_size": pipeline})))

    assert fullest(tensor * more, pipeline) <= fullest(tensor, pipeline)
    assert fullest(tensor, pipeline) <= fullest(tensor, 1)
    spread = on_gpu(weights, facts, lay_out(30, {"tp_size": tensor, "pp_size": pipeline}))
    assert sum(spread) * tensor >= weights.total
