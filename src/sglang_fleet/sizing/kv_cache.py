"""What one token takes in the KV cache of one GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sglang_fleet.sizing.written import integer, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sglang_fleet.models import ModelFacts
    from sglang_fleet.sizing.layout import Layout

# 0.5.23, ModelConfig._derive_model_shapes: any other architecture keeps whole heads.
MLA_ARCHITECTURES = frozenset(
    (
        "BailingMoeV2_5ForCausalLM",
        "BailingMoeV3ForCausalLM",
        "DeepseekV2ForCausalLM",
        "DeepseekV3ForCausalLM",
        "DeepseekV32ForCausalLM",
        "DeepseekVL2ForCausalLM",
        "DotsVLMForCausalLM",
        "GigaChat35ForCausalLM",
        "Glm4MoeLiteForCausalLM",
        "GlmMoeDsaForCausalLM",
        "HYV4ForCausalLM",
        "KimiK25ForConditionalGeneration",
        "KimiLinearForCausalLM",
        "KimiVLForConditionalGeneration",
        "MiniCPM3ForCausalLM",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
        "SarvamMLAForCausalLM",
    )
)
# 0.5.23, configure_kv_cache_dtype (srt/mem_cache/kv_cache_dtype.py): how many bits a value has, and how many values
# share a scale of one byte.
_WIDTHS = {
    "bf16": (16, 0),
    "bfloat16": (16, 0),
    "fp8_e4m3": (8, 0),
    "fp8_e5m2": (8, 0),
    "mxfp8": (8, 32),
    "nvfp4": (4, 16),
    "fp4_mx_block16": (4, 16),
    "fp4_e2m1": (4, 16),
}
_INDEX_BLOCK = 128  # DSATokenToKVPool.quant_block_size: values of an index key, and of FP8 K and V, that share a scale


@dataclass(frozen=True, slots=True)
class Cache:
    """The KV cache of a service.

    Attributes:
        kind: "MLA", "GQA", "MQA" or "MHA".
        dtype: the type of its values, such as "bfloat16".
        layer: bytes of a token in one layer, on one GPU.
        stages: bytes of a token in all layers of each pipeline stage, on one GPU.
        heads: KV heads on one GPU; 0 with MLA, which every GPU keeps whole.
        is_repeated: whether several GPUs keep the same KV heads, because there are fewer heads than GPUs.
    """

    kind: str
    dtype: str
    layer: int
    stages: tuple[int, ...]
    heads: int
    is_repeated: bool


def cache(facts: ModelFacts, args: Mapping[str, object], layout: Layout) -> Cache | str:
    """The cache, or why it is not known.

    As `DefaultPoolConfigurator._compute_cell_size` and `calculate_mla_kv_cache_dim` of 0.5.23.
    """
    if facts.irregular:
        return f"{facts.irregular} in config.json makes layers keep different things"
    if integer(args, "dcp_size") > 1:
        return "decode context parallelism spreads it in ways not computed here"
    if facts.recurrent and facts.full_attention_layers is None:
        return f"{facts.recurrent} in config.json makes some layers keep a state, and not which"
    dtype = cache_dtype(facts, args)
    if dtype not in _WIDTHS and dtype not in ("float16", "float32"):
        return f"kv_cache_dtype {dtype} is not known here"
    found = _mla(facts, dtype) if facts.kv_lora_rank is not None else _heads(facts, dtype, layout)
    if isinstance(found, str):
        return found
    kind, layer, heads, is_repeated = found
    kept = facts.full_attention_layers if facts.recurrent else None
    counts = [len(stage) if kept is None else sum(place in stage for place in kept) for stage in layout.stages]
    return Cache(kind, dtype, layer, tuple(layer * count for count in counts), heads, is_repeated)


def cache_dtype(facts: ModelFacts, args: Mapping[str, object]) -> str:
    """The type of the values in the cache: the model's own, unless an argument or the checkpoint says otherwise."""
    written = text(args, "kv_cache_dtype", "auto")
    if written != "auto":
        return written
    if (facts.kv_cache_quantization or "").upper() == "FP8":
        return "fp8_e4m3"
    return model_dtype(facts, args)


def model_dtype(facts: ModelFacts, args: Mapping[str, object]) -> str:
    """The type that SGLang computes in (0.5.23, `_get_and_verify_dtype`): it takes float32 for half of it."""
    written = text(args, "dtype", "auto")
    if written in ("half", "float16", "bfloat16"):
        return "float16" if written == "half" else written
    if written in ("float", "float32"):
        return "float32"
    return facts.torch_dtype if facts.torch_dtype in ("bfloat16", "float16") else "float16"


def _mla(facts: ModelFacts, dtype: str) -> tuple[str, int, int, bool] | str:
    architecture = next(iter(facts.architectures), "")
    if architecture not in MLA_ARCHITECTURES:
        return f"SGLang has no MLA for {architecture or 'an architecture without a name'}"
    if facts.kv_lora_rank is None or facts.qk_rope_head_dim is None:
        return "config.json lacks qk_rope_head_dim"
    width = facts.kv_lora_rank + facts.qk_rope_head_dim
    size = _bytes(width, dtype)
    if facts.index_topk is None:
        return "MLA", size, 0, False
    if dtype == "fp8_e4m3":  # the part with the position stays in two bytes, and scales come on top
        size = facts.kv_lora_rank + facts.kv_lora_rank // _INDEX_BLOCK * 4 + facts.qk_rope_head_dim * 2
    index = facts.index_head_dim or _INDEX_BLOCK
    return "MLA, sparse", size + index + index // _INDEX_BLOCK * 4, 0, False


def _heads(facts: ModelFacts, dtype: str, layout: Layout) -> tuple[str, int, int, bool] | str:
    if not facts.num_key_value_heads or not facts.head_dim:
        return "config.json does not say how many heads there are, or how wide they are"
    heads = max(1, facts.num_key_value_heads // layout.attention)
    values = heads * (facts.head_dim + (facts.v_head_dim or facts.head_dim))
    kind = "MHA" if facts.num_key_value_heads == facts.num_attention_heads else "GQA"
    return (
        "MQA" if facts.num_key_value_heads == 1 else kind,
        _bytes(values, dtype),
        heads,
        facts.num_key_value_heads < layout.attention,
    )


def _bytes(values: int, dtype: str) -> int:
    bits, block = _WIDTHS.get(dtype, (32 if dtype == "float32" else 16, 0))
    return values * bits // 8 + (values // block if block else 0)
