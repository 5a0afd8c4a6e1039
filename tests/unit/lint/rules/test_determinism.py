from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, host, view

DEEPSEEK = ModelFacts(architectures=("DeepseekV3ForCausalLM",), kv_lora_rank=512)
LLAMA = ModelFacts(architectures=("LlamaForCausalLM",))
GPT_OSS = ModelFacts(architectures=("GptOssForCausalLM",))
SAME = {"enable_deterministic_inference": True}
PREFILL, DECODE = "prefill_attention_backend", "decode_attention_backend"
HOPPER, B200, PRO_6000 = (host(compute_cap=cap) for cap in ("9.0", "10.0", "12.0"))
ON_B200: dict[str, Any] = {"state": B200, "version": "0.5.9"}
DRAFTS = {
    "speculative_algorithm": "EAGLE", "speculative_num_steps": 3, "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4, "speculative_draft_model_path": "/models/draft",
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL307", "attention_backend", args={**SAME, "attention_backend": "trtllm_mha"}),
        finds("SGL307", "attention_backend", args={**SAME, "attention_backend": "fa4"}, version="0.5.9"),
        finds("SGL308", "attention_backend", args={**SAME, "attention_backend": "flashinfer"}, model=DEEPSEEK),
        finds("SGL311", "attention_backend", args=SAME, model=LLAMA, **ON_B200, words="0.5.9 chooses trtllm_mha"),
        finds("SGL311", "attention_backend", args={**SAME, PREFILL: "triton"}, model=LLAMA, **ON_B200),
        finds("SGL311", "attention_backend", args={**SAME, PREFILL: "fa3", DECODE: "triton"}, model=LLAMA, **ON_B200),
        finds("SGL311", "attention_backend", args={**SAME, **DRAFTS}, model=LLAMA, **ON_B200),
        finds("SGL311", "attention_backend", args=SAME, model=DEEPSEEK, state=B200, words="chooses trtllm_mla"),
        finds("SGL311", "attention_backend", args=SAME, model=GPT_OSS, state=B200, words="on SM100 SGLang 0.5.23"),
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
        passes("SGL311", args=SAME, model=LLAMA, state=B200),
        passes("SGL311", args=SAME, model=LLAMA, state=HOPPER, version="0.5.9"),
        passes("SGL311", args=SAME, model=LLAMA, state=PRO_6000, version="0.5.9"),
        passes("SGL311", args=SAME, model=GPT_OSS, state=HOPPER),
        passes("SGL311", args={}, model=LLAMA, **ON_B200),
        passes("SGL311", args={**SAME, "attention_backend": "triton"}, model=LLAMA, **ON_B200),
        passes("SGL311", args={**SAME, "attention_backend": "triton"}, model=DEEPSEEK, state=B200),
        passes("SGL311", args={**SAME, PREFILL: "triton", DECODE: "triton"}, model=LLAMA, **ON_B200),
        passes("SGL311", args={**SAME, **DRAFTS, "speculative_eagle_topk": 4}, model=LLAMA, **ON_B200),
        passes("SGL311", args={**SAME, **DRAFTS, "page_size": 64}, model=LLAMA, **ON_B200),
        passes("SGL311", args={**SAME, "speculative_algorithm": "NGRAM"}, model=LLAMA, **ON_B200),
        passes("SGL253", args={"sampling_backend": "flashinfer", "attention_backend": "flashinfer"}),
        passes("SGL253", args={**SAME, "sampling_backend": "pytorch"}),
        passes("SGL253", args=SAME, nccl={"algo": "Ring"}),
        passes("SGL253", args={**SAME, "attention_backend": "fa3"}),
        passes("SGL253", args={**SAME, "attention_backend": "flashinfer", "disable_radix_cache": True}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


@pytest.mark.parametrize(
    ("version", "architecture", "is_found"),
    [
        ("0.5.6.post2", "LlamaForCausalLM", False),
        ("0.5.7", "LlamaForCausalLM", True),
        ("0.5.11", "LlamaForCausalLM", True),
        ("0.5.12", "LlamaForCausalLM", False),
        ("0.5.5", "GptOssForCausalLM", True),
        ("0.5.8.post1", "KimiK25ForConditionalGeneration", False),
        ("0.5.9", "KimiK25ForConditionalGeneration", True),
        ("0.5.9", "Qwen3NextForCausalLM", False),
    ],
)
def test_what_sglang_chooses_on_sm100_depends_on_release_and_model(
    version: str, architecture: str, *, is_found: bool
) -> None:
    model = ModelFacts(architectures=(architecture,))
    assert bool(ask("SGL311", view(SAME, model=model, state=B200, version=version))) is is_found


@pytest.mark.parametrize(("args", "model"), [({}, None), ({"device": "cpu"}, LLAMA)])
def test_nothing_is_said_of_an_unknown_model_nor_beside_gpus_that_are_not_used(
    args: dict[str, Any], model: ModelFacts | None
) -> None:
    assert not ask("SGL311", view({**SAME, **args}, model=model, **ON_B200))
