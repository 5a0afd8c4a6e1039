from typing import Any

import pytest

from sglang_fleet.models import ModelFacts
from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

HUB = {"model_path": "Qwen/Qwen3-32B"}
KIMI = ModelFacts(model_type="kimi_k2", needs_remote_code=True)
PLAIN = ModelFacts(architectures=("LlamaForCausalLM",))
AWQ, INT4 = ModelFacts(quantization="awq"), ModelFacts(quantization="compressed-tensors")


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL401", "model_path", args=HUB),
        finds("SGL402", "environment.HF_HUB_OFFLINE", args=HUB, environment={"HF_HUB_OFFLINE": "1"}),
        finds("SGL402", "environment.TRANSFORMERS_OFFLINE", args=HUB, environment={"TRANSFORMERS_OFFLINE": "TRUE"}),
        finds(
            "SGL403", "trust_remote_code", args={"trust_remote_code": True}, model=ModelFacts(needs_remote_code=False)
        ),
        finds("SGL404", "trust_remote_code", model=KIMI),
        finds("SGL405", "quantization", args={"quantization": "fp8"}, model=AWQ, words="weights are awq"),
        finds("SGL405", "quantization", args={"quantization": "gptq"}, model=INT4),
        finds("SGL408", "quantization", args={"quantization": "gptq_marlin"}, model=PLAIN),
        finds("SGL408", "quantization", args={"quantization": "compressed-tensors"}, model=PLAIN, version="0.5.9"),
        finds("SGL406", "dtype", args={"quantization": "awq", "dtype": "bfloat16"}),
        finds("SGL407", "grammar_backend", args={"grammar_backend": "none", "tool_call_parser": "kimi_k2"}),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL401", args={**HUB, "revision": "abc"}),
        passes("SGL401", args={"model_path": "/models/Qwen"}),
        passes("SGL401", args={"model_path": "./models/Qwen"}),
        passes("SGL401", args={"model_path": "s3://bucket/model"}),
        passes("SGL402", args=HUB),
        passes("SGL402", args=HUB, environment={"HF_HUB_OFFLINE": "0"}),
        passes("SGL402", environment={"HF_HUB_OFFLINE": "1"}),
        passes("SGL403", args={"trust_remote_code": True}, model=KIMI),
        passes("SGL403", args={"trust_remote_code": True}, model=ModelFacts()),
        passes("SGL403", args={"trust_remote_code": True}),
        passes("SGL403", model=ModelFacts(needs_remote_code=False)),
        passes("SGL404", args={"trust_remote_code": True}, model=KIMI),
        passes("SGL404", model=ModelFacts(model_type="deepseek_v3", needs_remote_code=True)),
        passes("SGL404", model=ModelFacts(model_type="kimi_vl", needs_remote_code=False)),
        passes("SGL405", args={"quantization": "awq_marlin"}, model=AWQ),
        passes("SGL405", args={"quantization": "compressed-tensors"}, model=INT4),
        passes("SGL405", args={"quantization": "w8a8_fp8"}, model=INT4),
        passes("SGL405", args={"quantization": "fp8"}, model=ModelFacts()),
        passes("SGL405", args={"quantization": "moe_wna16"}, model=AWQ),
        passes("SGL405", args={"quantization": "modelopt_fp4"}, model=ModelFacts(quantization="fp8")),
        passes("SGL405", args={"quantization": "fp8"}),
        passes("SGL401", args={**HUB, "trust_remote_code": True}),
        passes("SGL403", args={"trust_remote_code": True}, model=ModelFacts(needs_remote_code=None)),
        passes("SGL408", args={"quantization": "fp8"}, model=PLAIN),
        passes("SGL408", args={"quantization": "awq"}, model=AWQ),
        passes("SGL408", args={"quantization": "awq"}, model=ModelFacts()),
        passes("SGL408", args={"quantization": "awq"}),
        passes("SGL408", args={}, model=PLAIN),
        passes("SGL406", args={"quantization": "awq", "dtype": "half"}),
        passes("SGL406", args={"quantization": "awq_marlin", "dtype": "bfloat16"}),
        passes("SGL406", args={"quantization": "awq"}),
        passes("SGL407", args={"grammar_backend": "none"}),
        passes("SGL407", args={"tool_call_parser": "kimi_k2"}),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))


@pytest.mark.parametrize("args", [HUB, {**HUB, "trust_remote_code": True}, {**HUB, "revision": "a" * 40}])
def test_an_open_revision_is_said_once(args: dict[str, Any]) -> None:
    one = view(args)
    assert len([*ask("SGL401", one), *ask("SGL702", one)]) == ("revision" not in args)
