from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.models import parse_facts
from sglang_fleet.sizing import tokens
from sglang_fleet.sizing.capacity import GIB, MIB, chosen_fraction, fitting, page_size, reserved_for_images
from tests.unit.sizing import known_models as known

LLAMA = parse_facts(known.LLAMA_8B, weight_bytes=None)
KIMI = parse_facts(known.KIMI_K25, weight_bytes=None)


@pytest.mark.parametrize(
    ("free", "before", "fraction", "expected"),
    [
        # sglang PR 4760, Llama 3.1 8B on an H100: 63.48 GB free after 15.11 of weights, 442,750 tokens.
        (63.48, 63.48 + 15.11, 0.88, 442_750),
        # Another log of the same, found without a place to point to: 78.81 before, 63.72 after, 444,500 tokens.
        (63.72, 78.81, 0.88, 444_500),
    ],
)
def test_tokens_as_servers_reported_them(free: float, before: float, fraction: float, expected: int) -> None:
    found = tokens(int(free * GIB), int(before * GIB), LLAMA, {"mem_fraction_static": fraction})
    assert found == pytest.approx(expected, abs=0.011 * GIB / 131_072)  # the logs have two decimals


def test_nothing_is_left_where_servers_gave_up() -> None:
    # SemiAnalysisAI/InferenceX issue 2128: 12.25 GB free of 137.9, given up with 0.88, "above 0.9113" would do.
    free, before = int(12.25 * GIB), int(137.9 * GIB)
    assert tokens(free, before, LLAMA, {"mem_fraction_static": 0.88}) == 0
    assert tokens(free, before, LLAMA, {"mem_fraction_static": 0.911}) == 0
    assert tokens(free, before, LLAMA, {"mem_fraction_static": 0.912}) != 0


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, 1003),
        ({"page_size": 64}, 960),
        ({"max_total_tokens": 700}, 700),
        ({"max_total_tokens": "1k"}, 1000),
        ({"max_total_tokens": 700, "page_size": 64}, 640),
        ({"max_total_tokens": 5000}, 1003),
        ({"attention_backend": "flashmla"}, 960),
    ],
)
def test_whole_pages_and_the_written_limit(args: dict[str, object], expected: int) -> None:
    assert fitting(100_399, (100, 90), args) == expected


def test_a_stage_without_a_cache_sets_no_limit() -> None:
    assert fitting(1000, (0, 10), {}) == 100


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, 1),
        ({"page_size": 16}, 16),
        ({"attention_backend": "trtllm_mla"}, 64),
        ({"attention_backend": "trtllm_mla", "page_size": 32}, 32),
        ({"attention_backend": "triton", "decode_attention_backend": "trtllm_mha"}, 64),
        ({"attention_backend": "TRTLLM_MHA", "page_size": 128}, 128),
    ],
)
def test_page_sizes_that_backends_insist_on(args: dict[str, object], expected: int) -> None:
    assert page_size(args) == expected


def test_images_keep_some_memory() -> None:
    assert reserved_for_images(LLAMA, {}, {}) == 0
    assert reserved_for_images(KIMI, {}, {}) == 100 * MIB
    assert reserved_for_images(KIMI, {"mm_feature_transport": "cuda_ipc"}, {}) == 1124 * MIB
    assert reserved_for_images(KIMI, {}, {"SGLANG_VLM_CACHE_SIZE_MB": "512"}) == 512 * MIB


def test_a_cache_that_is_not_known_has_no_number_of_tokens() -> None:
    assert tokens(GIB, 2 * GIB, parse_facts({}, weight_bytes=None), {"mem_fraction_static": 0.9}) is None


def test_the_weakest_stage_counts_for_all() -> None:
    args: dict[str, object] = {"pp_size": 8, "mem_fraction_static": 0.9}
    assert tokens(20 * GIB, 100 * GIB, KIMI, args) == (10 * GIB - 100 * MIB) // 9216


@pytest.mark.parametrize(
    ("gib", "gpus", "args", "fraction"),
    [
        # 0.5.23's own arithmetic: 10 GiB at least on a large GPU; else 512 MiB, 1.5 MiB a token of a chunk, 2 MiB a
        # graph's request and 128 MiB a GPU.
        (80, 1, {}, round(1 - (512 + 8192 * 1.5 + 128 + 512) / 81920, 3)),
        (96, 8, {"tp_size": 8, "chunked_prefill_size": 2048, "max_running_requests": 16}, round(1 - 10 / 96, 3)),
        (24, 1, {}, round(1 - (512 + 4096 * 1.5 + 128 + 96) / 24576, 3)),
        (24, 1, {"disable_cuda_graph": True}, round(1 - (512 + 4096 * 1.5 + 128) / 24576, 3)),
        (1, 1, {}, 0.0),
    ],
)
def test_the_fraction_that_is_chosen(gib: int, gpus: int, args: dict[str, object], fraction: float) -> None:
    assert chosen_fraction(gib * GIB, gpus, args) == fraction


MEMORY = st.integers(0, 300 * GIB)


@given(free=MEMORY, used=MEMORY, fraction=st.floats(0.05, 0.99), page=st.sampled_from([1, 16, 64]))
def test_more_memory_never_means_fewer_tokens(free: int, used: int, fraction: float, page: int) -> None:
    def found(free: int, **args: Any) -> int:
        count = tokens(free, free + used, LLAMA, {"mem_fraction_static": fraction, "page_size": page, **args})
        assert count is not None
        return count

    count = found(free)
    assert count >= 0
    assert count % page == 0
    assert found(free + GIB) >= count
    assert found(free, kv_cache_dtype="fp8_e4m3") in range(2 * count, 2 * count + 2 * page + 1)
