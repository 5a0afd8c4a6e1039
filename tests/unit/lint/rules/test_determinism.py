from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

DEEPSEEK = ModelFacts(architectures=("DeepseekV3ForCausalLM",), kv_lora_rank=512)
SAME = {"enable_deterministic_inference": True}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL307", "attention_backend", args={**SAME, "attention_backend": "trtllm_mha"}),
        finds("SGL307", "attention_backend", args={**SAME, "attention_backend": "fa4"}, version="0.5.9"),
        finds("SGL308", "attention_backend", args={**SAME, "attention_backend": "flashinfer"}, model=DEEPSEEK),
        finds("SGL253", "sampling_backend", args={**SAME, "sampling_backend": "flashinfer"}),
        finds("SGL253", "nccl.algo", args={**SAME, "tp_size": 2}, nccl={"algo": "Ring"}),
        finds("SGL253", "attention_backend", args={**SAME, "attention_backend": "flashinfer"}, words="prefix cache"),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL307", args={**SAME, "attention_backend": "flashinfer"}),
        passes("SGL307", args={**SAME, "attention_backend": "fa4"}),
        passes("SGL307", args=SAME),
        passes("SGL307", args={"attention_backend": "trtllm_mha"}),
        passes("SGL308", args={**SAME, "attention_backend": "triton"}, model=DEEPSEEK),
        passes("SGL308", args={**SAME, "attention_backend": "flashinfer"}),
        passes("SGL308", args={"attention_backend": "flashinfer"}, model=DEEPSEEK),
        passes("SGL253", args={"sampling_backend": "flashinfer", "attention_backend": "flashinfer"}),
        passes("SGL253", args={**SAME, "sampling_backend": "pytorch"}),
        passes("SGL253", args=SAME, nccl={"algo": "Ring"}),
        passes("SGL253", args={**SAME, "attention_backend": "fa3"}),
        passes("SGL253", args={**SAME, "attention_backend": "flashinfer", "disable_radix_cache": True}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
