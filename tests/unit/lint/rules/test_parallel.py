from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, host, view

KIMI = ModelFacts(num_attention_heads=64, num_key_value_heads=64, kv_lora_rank=512, num_experts=384)
QWEN = ModelFacts(num_attention_heads=40, num_key_value_heads=8)


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL101", "dp_size", args={"tp_size": 2, "dp_size": 4}, gpus=[0, 1, 2, 3], words="needs 8 GPUs"),
        finds("SGL102", "dp_size", args={"tp_size": 4, "dp_size": 4}, state=host(count=8), words="host has 8"),
        finds("SGL103", "gpus", args={"tp_size": 4}, gpus=[0, 1, 2, 3, 4, 5], words="tp_size 4 times pp_size 1 uses 4"),
        finds(
            "SGL103",
            "gpus",
            args={"tp_size": 4},
            nodes=2,
            gpus=[0, 1, 2, 3],
            words="names 4 GPUs; tp_size 4 times pp_size 1 on 2 nodes uses 2",
        ),
        finds("SGL103", "gpus", args={"tp_size": 2, "dp_size": 2}, gpus=[0, 1, 2, 3, 4, 5, 6, 7], words="dp_size 2"),
        finds(
            "SGL103",
            "gpus",
            args={"tp_size": 2, "dp_size": 2, "enable_dp_attention": True},
            gpus=[0, 1, 2, 3],
            words="uses 2",
        ),
        finds("SGL109", "ep_size", args={"tp_size": 8, "ep_size": 4, "moe_a2a_backend": "deepep"}, words="tp_size (8)"),
        finds("SGL109", "ep_size", args={"tp_size": 8, "ep_size": 4, "moe_a2a_backend": "mooncake"}, version="0.5.9"),
        finds("SGL110", "ep_size", args={"tp_size": 8, "ep_size": 3}),
        finds("SGL110", "ep_size", args={"tp_size": 4, "ep_size": 8}),
        finds("SGL110", "ep_size", args={"tp_size": 8, "ep_size": 8, "moe_dp_size": 2}),
        finds("SGL111", "tp_size", args={"tp_size": 6}, model=KIMI, words="64 attention heads"),
        finds("SGL111", "tp_size", args={"tp_size": 5}, model=QWEN, words="8 key/value heads"),
        finds("SGL119", "moe_dense_tp_size", args={"tp_size": 8, "moe_dense_tp_size": 2}),
        finds("SGL119", "moe_dense_tp_size", args={"tp_size": 8, "moe_dense_tp_size": 8}, version="0.5.12"),
        finds("SGL109", "ep_size", args={"tp_size": 8, "ep_size": 4, "moe_a2a_backend": "nixl"}),
        finds("SGL112", "ep_size", args={"tp_size": 7, "ep_size": 7}, model=KIMI, words="384 experts"),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL101", args={"tp_size": 2, "dp_size": 2}, gpus=[0, 1, 2, 3]),
        passes("SGL101", args={"tp_size": 4, "dp_size": 4, "enable_dp_attention": True}, gpus=[0, 1, 2, 3]),
        passes("SGL101", args={"tp_size": 4, "attn_dp_size": 4}, gpus=[0, 1, 2, 3]),
        passes("SGL101", args={"tp_size": 4, "dp_size": 4}),
        passes("SGL102", args={"tp_size": 4, "dp_size": 2}, state=host(count=8)),
        passes("SGL102", args={"tp_size": 4, "dp_size": 4}),
        passes("SGL103", args={"tp_size": 2, "pp_size": 2}, gpus=[0, 1, 2, 3]),
        passes("SGL103", args={"tp_size": 2, "dp_size": 2}, gpus=[0, 1, 2, 3]),
        passes("SGL103", args={"tp_size": 2, "base_gpu_id": 2}, gpus=[0, 1, 2, 3]),
        passes("SGL103", args={"tp_size": 2}),
        passes("SGL103", args={"tp_size": 8, "pp_size": 2}, nodes=2, gpus=[0, 1, 2, 3, 4, 5, 6, 7]),
        passes("SGL109", args={"tp_size": 8, "ep_size": 8, "moe_a2a_backend": "deepep"}),
        passes("SGL109", args={"tp_size": 8, "moe_a2a_backend": "deepep"}),
        passes("SGL109", args={"tp_size": 8, "ep_size": 4}),
        passes("SGL110", args={"tp_size": 8, "ep_size": 4}),
        passes("SGL110", args={"tp_size": 8, "ep_size": 3, "moe_a2a_backend": "deepep"}),
        passes("SGL111", args={"tp_size": 8}, model=KIMI),
        passes("SGL111", args={"tp_size": 16}, model=ModelFacts(num_attention_heads=64, num_key_value_heads=8)),
        passes("SGL111", args={"tp_size": 6, "attn_dp_size": 6}, model=KIMI),
        passes("SGL111", args={"tp_size": 6}, model=ModelFacts()),
        passes("SGL111", args={"tp_size": 6}),
        passes("SGL119", args={"tp_size": 8, "moe_dense_tp_size": 1}),
        passes("SGL119", args={"tp_size": 8, "moe_dense_tp_size": 8}, version="0.5.13"),
        passes("SGL119", args={"tp_size": 8}),
        passes("SGL112", args={"tp_size": 8, "ep_size": 8}, model=KIMI),
        passes("SGL112", args={"tp_size": 7, "ep_size": 7, "ep_num_redundant_experts": 1}, model=KIMI),
        passes("SGL112", args={"tp_size": 7, "ep_size": 7}, model=QWEN),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
