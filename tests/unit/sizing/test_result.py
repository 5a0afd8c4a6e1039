from dataclasses import replace
from typing import Any

import pytest

from sglang_fleet.models import parse_facts
from sglang_fleet.sizing import CannotFit, Sizing, problems, size
from sglang_fleet.sizing.capacity import GIB
from tests.unit.sizing import known_models as known


def sized(config: dict[str, Any], memory: float | None = 80, weight_bytes: int | None = None, **args: object) -> Sizing:
    facts = parse_facts(config, weight_bytes=weight_bytes)
    return size(facts, args, gpu_memory=None if memory is None else int(memory * GIB))


def said(sizing: Sizing, text: str) -> bool:
    return any(text in sentence for sentence in sizing.assumptions)


def wrong(sizing: Sizing, **args: object) -> list[tuple[str, bool]]:
    return [(problem.kind, problem.is_certain) for problem in problems(sizing, args)]


def test_an_h100_as_its_server_reported_it() -> None:
    # 444,500 and 442,750 tokens in two public logs; nvidia-smi shows 81559 MiB.
    found = sized(known.LLAMA_8B, 81559 / 1024, mem_fraction_static=0.88)
    assert found.tokens == pytest.approx(443_600, rel=0.01)
    assert (found.bound, found.context, found.running) == ("about", 131072, 2048)
    assert found.full_requests == 3


def test_without_memory_what_does_not_depend_on_it_is_known() -> None:
    found = sized(known.KIMI_K25, None, pp_size=8)
    assert found.weights is not None
    assert (found.tokens, found.budget, found.full_requests, found.running) == (None, None, None, None)
    assert [stage.cache for stage in found.stages][:4] == [8064, 8064, 8064, 9216]
    assert not said(found, "before the weights load")
    assert problems(found, {}) == ()


def test_data_parallel_attention_has_a_cache_for_each_scheduler() -> None:
    whole, split = (sized(known.KIMI_K25, 141, tp_size=8, **more) for more in ({}, {"attn_dp_size": 4}))
    assert whole.tokens is not None
    assert split.all_tokens is not None
    assert split.tokens is not None
    assert split.all_tokens == 4 * split.tokens > whole.tokens > split.tokens
    assert split.full_requests == 4 * (split.tokens // 262144) != 0


@pytest.mark.parametrize(("written", "expected"), [(100, 100), (102, 100), (2, 4), (10**9, 100)])
def test_each_scheduler_runs_its_share_of_the_requests(written: int, expected: int) -> None:
    found = sized(known.KIMI_K25, 141, tp_size=8, attn_dp_size=4, max_running_requests=written, max_total_tokens=50)
    assert found.running == expected


@pytest.mark.parametrize(("written", "expected"), [(64, 64), (10**9, 222_000)])
def test_more_requests_than_half_the_tokens_are_lowered(written: int, expected: int) -> None:
    found = sized(known.LLAMA_8B, 81559 / 1024, mem_fraction_static=0.88, max_running_requests=written)
    assert found.running == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(
    ("config", "args", "bound", "sentence"),
    [
        (known.LLAMA_8B, {}, "about", "an estimate from the shapes"),
        (known.LLAMA_8B, {}, "about", "not written; SGLang chooses"),
        (known.LLAMA_8B, {"quantization": "fp8"}, "at least", "shrinks the weights"),
        (known.LLAMA_8B, {"cpu_offload_gb": 10}, "at least", "host memory"),
        (known.LLAMA_8B, {"speculative_algorithm": "EAGLE"}, "at most", "draft model"),
        (known.LLAMA_8B, {"lora_paths": ["a"]}, "at most", "LoRA"),
        (known.LLAMA_8B, {"lora_paths": ["a"], "quantization": "fp8"}, "about", "LoRA"),
        (known.KIMI_K25, {"tp_size": 8}, "at most", "image encoder is not counted"),
        (known.DEEPSEEK_V32, {"tp_size": 8}, "at least", "FP8 cache"),
        (known.GPT_OSS, {}, "at least", "sliding window"),
        (known.QWEN_35_397B, {"tp_size": 8}, "at most", "a state (linear_num_key_heads in config.json)"),
        (known.QWEN_35_397B, {"tp_size": 8}, "at most", "weights are not known"),
    ],
)
def test_what_was_assumed_is_said(config: dict[str, Any], args: dict[str, Any], bound: str, sentence: str) -> None:
    found = sized(config, 80, **args)
    assert found.bound == bound
    assert said(found, sentence), found.assumptions


def test_sliding_windows_without_a_pool_of_their_own_keep_every_token() -> None:
    assert not said(sized(known.GPT_OSS, disable_hybrid_swa_memory=True), "sliding window")
    assert not said(sized(known.LLAMA_8B | {"sliding_window": 4096}), "sliding window")


def test_the_index_is_no_estimate() -> None:
    found = sized(known.LLAMA_8B, weight_bytes=16_060_522_496)
    assert found.source == "index"
    assert said(found, "are the index's")
    assert found.weights == pytest.approx(16_060_522_496, rel=1e-6)


@pytest.mark.parametrize(
    ("stored", "dtype", "share"),
    [("bfloat16", "auto", 1), ("float32", "auto", 0.5), ("float32", "float32", 1), ("bfloat16", "float32", 2)],
)
def test_weights_are_counted_in_the_type_that_they_are_loaded_in(stored: str, dtype: str, share: float) -> None:
    config = known.LLAMA_8B | {"torch_dtype": stored}
    assert sized(config, 80, 16_000_000_000, dtype=dtype).weights == pytest.approx(16_000_000_000 * share, rel=1e-6)
    assert sized(config, 80, None, dtype=dtype).weights == pytest.approx(
        16_060_522_496 * (2 if dtype == "float32" else 1), rel=1e-3
    )


def test_an_index_without_shapes_is_spread_evenly() -> None:
    found = sized(known.GPT_OSS, 80, 65_000_000_000, tp_size=2)
    assert found.source == "even"
    assert found.weights == pytest.approx(32_500_000_000, rel=1e-6)
    assert said(found, "spread evenly")
    assert found.bound == "about"  # layers with a sliding window err the other way


def test_weights_that_leave_nothing_are_an_error_only_where_they_are_known() -> None:
    args: dict[str, Any] = {"mem_fraction_static": 0.8}
    for weight_bytes, is_certain in ((141_107_412_992, True), (None, False)):
        found = sized(known.LLAMA_70B, 80, weight_bytes, **args)
        assert found.tokens == 0
        assert wrong(found) == [("weights", is_certain)]
    assert wrong(sized(known.LLAMA_70B, 80, 141_107_412_992, tp_size=4, **args)) == []


def test_weights_that_just_fit_without_what_cuda_takes_are_no_error() -> None:
    found = sized(known.LLAMA_8B, 17.2, 16_060_522_496, mem_fraction_static=0.88)
    assert found.tokens == 0
    assert wrong(found) == [("weights", False)]


def test_a_cache_that_is_counted_high_does_not_hide_weights_that_are_too_large() -> None:
    assert wrong(sized(known.GPT_OSS, 80, 141_107_412_992, mem_fraction_static=0.8)) == [("weights", True)]


def test_weights_that_shrink_as_they_load_are_nobodys_problem() -> None:
    assert wrong(sized(known.LLAMA_70B, 80, 141_107_412_992, mem_fraction_static=0.8, quantization="fp8")) == []


def test_a_context_that_does_not_fit() -> None:
    found = sized(known.LLAMA_8B, 24, mem_fraction_static=0.88)
    assert wrong(found) == [("context", False)]
    assert wrong(sized(known.LLAMA_8B, 24, mem_fraction_static=0.88, context_length=8192)) == []


def test_requests_that_cannot_all_run() -> None:
    args: dict[str, Any] = {"mem_fraction_static": 0.88, "context_length": 8192, "max_running_requests": 64}
    found = sized(known.LLAMA_8B, 24, **args)
    assert wrong(found, **args) == [("requests", False)]
    assert wrong(found, **args | {"max_running_requests": 16}) == []
    assert wrong(sized(known.LLAMA_8B, 80, **args), **args) == []


def test_a_problem_tells_what_to_do() -> None:
    tight, hopeless = (
        problems(sized(known.LLAMA_70B, 140, 141_107_412_992, mem_fraction_static=0.9), {}),
        problems(sized(known.LLAMA_70B, 80, 141_107_412_992, mem_fraction_static=0.9), {}),
    )
    assert [problem.fix for problem in tight] == ["raise it to more than 0.95"]
    assert [problem.fix for problem in hopeless] == ["use more GPUs (tp_size, pp_size)"]
    assert isinstance(tight[0], CannotFit)


def test_a_model_that_says_nothing_is_survived() -> None:
    found = sized({}, 80, tp_size=8, pp_size=3)
    assert (found.weights, found.tokens, len(found.stages)) == (None, None, 3)
    assert problems(found, {"max_running_requests": 5}) == ()


def test_more_stages_than_layers_are_survived() -> None:
    config = known.LLAMA_8B | {"num_hidden_layers": 2}
    assert replace(sized(config, 80, pp_size=3), assumptions=()).tokens


@pytest.mark.parametrize("limit", [1000, "1k"])
def test_where_max_total_tokens_is_the_limit_it_is_what_to_raise(limit: object) -> None:
    args: dict[str, Any] = {"mem_fraction_static": 0.88, "context_length": 8192, "max_total_tokens": limit}
    (found,) = problems(sized(known.LLAMA_8B, 24, **args), args)
    assert (found.kind, found.argument, found.is_certain) == ("context", "max_total_tokens", False)
    assert "8,192" in found.message
    assert found.fix == "raise it, or remove it"


def test_where_memory_is_the_limit_max_total_tokens_is_not_blamed() -> None:
    args: dict[str, Any] = {"mem_fraction_static": 0.88, "context_length": 131072, "max_total_tokens": 130000}
    (found,) = problems(sized(known.LLAMA_8B, 24, **args), args)
    assert found.argument == "context_length"
    assert "mem_fraction_static" in found.fix


def test_requests_that_share_what_max_total_tokens_leaves_name_it() -> None:
    args: dict[str, Any] = {
        "mem_fraction_static": 0.88, "context_length": 512, "max_running_requests": 64, "max_total_tokens": 1000
    }  # fmt: skip
    (found,) = problems(sized(known.LLAMA_8B, 24, **args), args)
    assert found.argument == "max_running_requests"
    assert "max_total_tokens" in found.fix
