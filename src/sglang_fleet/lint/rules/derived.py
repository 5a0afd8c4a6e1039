"""What several settings say together, as SGLang reads them. No rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.answer import Unknown
from sglang_fleet.lint.views import VISIBLE

if TYPE_CHECKING:
    from sglang_fleet.lint.views import ServiceView

ATTENTION = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
EAGLE_FAMILY = frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE"})
# They give every GPU of the tensor parallel group experts of its own, whatever ep_size says.
SPAN_ALL = frozenset({
    "deepep", "deepep_v2", "mooncake", "nixl", "flashinfer", "flashinfer_megamoe", "megamoe", "mori", "pplx",
    "ascend_fuseep",
})  # fmt: skip
# Kernels of TensorRT-LLM for experts.
TRTLLM_MOE = frozenset({"flashinfer_trtllm", "flashinfer_trtllm_routed", "experimental_sgl_trtllm"})
# Gated delta net beside full attention: 0.5.23, qwen3_5.py in model_overrides.
GATED_DELTA_NET = frozenset({
    "Qwen3NextForCausalLM", "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration",
})  # fmt: skip


def attention_replicas(view: ServiceView) -> int:
    """How many groups of the tensor parallel GPUs run attention for requests of their own (DP attention).

    `attn_dp_size`, or `dp_size` beside `enable_dp_attention`, which SGLang 0.5.22 and newer turn into it.
    """
    own = view.number("attn_dp_size") or 1
    if own > 1:
        return own
    return max(view.number("dp_size") or 1, 1) if view.value("enable_dp_attention") is True else 1


def whole_replicas(view: ServiceView) -> int:
    """How many whole copies of the model the server runs, each on GPUs of its own."""
    return 1 if view.value("enable_dp_attention") is True else max(view.number("dp_size") or 1, 1)


def nodes(view: ServiceView) -> int:
    """How many hosts run the server together."""
    return max(view.service.nodes, view.number("nnodes") or 1)


def stages_of_node(view: ServiceView) -> int:
    """How many stages of the pipeline a host has, whole or in part."""
    return max(stages(view) // nodes(view), 1)


def tensor_of_node(view: ServiceView) -> int:
    """How many of the GPUs that share a layer a host has."""
    return max((view.number("tp_size") or 1) // max(nodes(view) // stages(view), 1), 1)


def attention_tensor_parallel(view: ServiceView) -> int:
    """How many GPUs share the heads of one request's attention; 0 when the numbers do not divide."""
    share = attention_replicas(view) * max(view.number("attn_cp_size") or 1, 1)
    tensor = view.number("tp_size") or 1
    return tensor // share if tensor % share == 0 else 0


def expert_parallel(view: ServiceView) -> int:
    """How many GPUs share the experts, after SGLang has put ep_size right."""
    spans = view.value("moe_a2a_backend") in SPAN_ALL
    return max(view.number("tp_size" if spans else "ep_size") or 1, 1)


def algorithm(view: ServiceView) -> str:
    """The algorithm of speculative decoding; empty when it is off."""
    value = view.value("speculative_algorithm")
    return value.upper() if isinstance(value, str) else ""


def model_class(view: ServiceView) -> str | None:
    """The class that SGLang loads the model with, which it decides many settings by; None when it is not known."""
    return view.model.architectures[0] if view.model is not None and view.model.architectures else None


def is_sparse_deepseek(view: ServiceView) -> bool:
    """Whether the model is DeepSeek V3.2, or built like it: SGLang's own sparse attention, with an indexer."""
    known = {"DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"}
    return view.model is not None and view.model.index_topk is not None and model_class(view) in known


def pages(view: ServiceView) -> tuple[str, int] | None:
    """The attention backend that decides the page size, and the size it makes of the written one."""
    used = attention_backends(view)
    decode = {value for name, value in used.items() if name != "prefill_attention_backend"}
    wide = (16, 32, 64, 128) if view.since("0.5.17") else (16, 32, 64)
    kept = {
        "flashmla": (64,), "trtllm_mla": (32, 64), "tokenspeed_mla": (32, 64), "cutedsl_mla": (32, 64),
        "hpc_ops": (64,), "cutlass_mla": (128,),
    }  # fmt: skip
    for backend, sizes in kept.items():
        if backend in decode:
            return backend, _kept(view, sizes, 128 if backend == "cutlass_mla" else 64)
    if "trtllm_mha" in used.values():
        return "trtllm_mha", _kept(view, wide, 64)
    return None


def _kept(view: ServiceView, sizes: tuple[int, ...], otherwise: int) -> int:
    written = view.number("page_size")
    return written if written in sizes and written is not None else otherwise


def stages(view: ServiceView) -> int:
    """Stages of the pipeline."""
    return view.number("pp_size") or 1


def micro_batch_limit(view: ServiceView) -> int | None:
    """The most requests in one batch of the pipeline; None where SGLang finds the number at its start."""
    written = view.number("pp_max_micro_batch_size")
    running = view.number("max_running_requests")
    if written is not None:
        return written
    return None if running is None else max(running // attention_replicas(view) // stages(view), 1)


def attention_backends(view: ServiceView) -> dict[str, str]:
    """What is written: the argument to blame, and the backend, of those that are used.

    The one for prefill and the one for decode win over `attention_backend`, which is unused beside both.
    """
    found = {name: value for name in ATTENTION if isinstance(value := view.value(name), str)}
    if len(found) == len(ATTENTION):
        del found["attention_backend"]
    return found


def capability(view: ServiceView) -> tuple[int, int] | None:
    """The compute capability of the service's GPUs; None when it is not known, or not the same for all."""
    if not view.gpus:
        return None
    found = {gpu.compute_cap for gpu in view.gpus}
    text = found.pop()
    if found or isinstance(text, Unknown):
        return None
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def architecture(view: ServiceView) -> str | None:
    """NVIDIA's name of the GPUs' architecture, such as SM120; None as with `capability`."""
    found = capability(view)
    return None if found is None else f"SM{found[0]}{found[1]}"


def is_path(text: str) -> bool:
    """Whether a model is named by a path, also one that only a shell would understand."""
    return text.startswith(("/", ".", "~")) or "$" in text


def is_repository(view: ServiceView) -> bool:
    """Whether the model is named by its repository on a hub."""
    path = view.service.args.model_path
    parts = path.split("/")
    return len(parts) == 2 and all(parts) and not is_path(path)  # noqa: PLR2004  # OWNER/NAME


def is_all_of_host(view: ServiceView) -> bool:
    """Whether nothing keeps the service from any GPU of the host."""
    return view.service.gpus is None and VISIBLE not in view.environment


def is_on(text: str | None) -> bool:
    """Whether a variable of SGLang's or Hugging Face's is switched on."""
    return text is not None and text.strip().lower() in {"1", "true", "yes", "on", "y"}
