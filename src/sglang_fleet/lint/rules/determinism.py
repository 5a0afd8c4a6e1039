"""Deterministic inference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import model_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


_DEEPSEEK = frozenset({
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM",
})  # fmt: skip
_RADIX_AND_DETERMINISTIC = frozenset({"fa3", "fa4", "triton", "ascend", "intel_xpu"})


def _deterministic(view: ServiceView) -> frozenset[str]:
    """The attention backends that SGLang takes for deterministic inference."""
    newer = {"fa4"} if view.since("0.5.14") else set()
    return frozenset({"flashinfer", "fa3", "triton", "ascend", "intel_xpu"} | newer)


@service_rule("SGL307", "error")
def attention_backend_not_deterministic(view: ServiceView) -> Iterator[Found]:
    """The attention backend is not deterministic.

    Why: enable_deterministic_inference needs kernels whose results do not depend on what else is in the batch. SGLang
    refuses all others.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/choices.py and overrides.py:
    DETERMINISTIC_ATTENTION_BACKEND_CHOICES.

    Fix: Write fa3 (Hopper), triton or flashinfer, or remove attention_backend.
    """
    backend = view.value("attention_backend")
    is_asked = view.value("enable_deterministic_inference") is True
    if is_asked and isinstance(backend, str) and backend not in _deterministic(view):
        yield view.found(
            "attention_backend", f"{backend} is refused for deterministic inference", "write triton or flashinfer"
        )


@service_rule("SGL308", "error", needs="model")
def attention_backend_not_deterministic_with_mla(view: ServiceView) -> Iterator[Found]:
    """FlashInfer is not deterministic for DeepSeek.

    Why: With enable_deterministic_inference SGLang takes fa3, triton and (from 0.5.16) fa4 for DeepSeek's models, and
    refuses flashinfer.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/attention_hook.py,
    handle_deterministic_inference.

    Fix: Write triton, or remove attention_backend.
    """
    is_asked = view.value("enable_deterministic_inference") is True and model_class(view) in _DEEPSEEK
    if is_asked and view.value("attention_backend") == "flashinfer":
        yield view.found("attention_backend", "flashinfer is refused for deterministic DeepSeek", "write triton")


@service_rule("SGL253", "note")
def replaced_for_determinism(view: ServiceView) -> Iterator[Found]:
    """Deterministic inference replaces other settings.

    Why: With enable_deterministic_inference SGLang samples with pytorch, reduces with NCCL's tree (NCCL_ALGO) and
    without its own all-reduce when tp_size is above 1, and turns the prefix cache off for attention backends that
    cannot use it deterministically, such as flashinfer.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, _handle_deterministic_inference; 0.5.19 to 0.5.23
    arg_groups/attention_hook.py and overrides.py.

    Fix: Remove what is replaced; for the prefix cache use fa3 or triton.
    """
    if view.value("enable_deterministic_inference") is not True:
        return
    sampling, backend = view.value("sampling_backend"), view.value("attention_backend")
    if sampling not in (None, "pytorch", "ascend"):
        yield view.found("sampling_backend", f"{sampling} becomes pytorch, which is deterministic", "remove it")
    if view.service.nccl.algo and (view.number("tp_size") or 1) > 1:
        yield view.found_at("nccl.algo", "is replaced by tree: enable_deterministic_inference is set", "remove it")
    halves = view.written("prefill_attention_backend") or view.written("decode_attention_backend")
    is_cached = view.value("disable_radix_cache") is not True
    if isinstance(backend, str) and backend not in _RADIX_AND_DETERMINISTIC and not halves and is_cached:
        yield view.found(
            "attention_backend",
            f"{backend} turns the prefix cache off: it cannot use it in deterministic inference",
            "write fa3 or triton",
        )
