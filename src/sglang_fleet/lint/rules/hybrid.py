"""Models that mix attention with layers that keep a state: Qwen3-Next, Qwen3.5, Nemotron-H and others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import (
    GATED_DELTA_NET,
    algorithm,
    architecture,
    attention_backends,
    capability,
    model_class,
    pages,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

# Those that SGLang treats alike in this in every release.
_MODELS = GATED_DELTA_NET | {"NemotronHForCausalLM"}
# Some of the many that keep no state, with attention in every layer.
_WITHOUT = frozenset({
    "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM",
    "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "KimiK25ForConditionalGeneration", "GptOssForCausalLM",
    "Glm4MoeForCausalLM", "MiniMaxM2ForCausalLM",
})  # fmt: skip
_NEW, _OLD = "mamba_radix_cache_strategy", "mamba_scheduler_strategy"
_EXTRA = frozenset({"extra_buffer", "extra_buffer_lazy"})
_SM120 = 12


def _name(view: ServiceView) -> str:
    """The argument that says how states are kept, as it is written or as this release has it."""
    return _OLD if view.written(_OLD) or not view.has(_NEW) else _NEW


def _keeps_prefixes(view: ServiceView) -> bool:
    """Whether the model is such a one, and its prefix cache on."""
    return model_class(view) in _MODELS and view.value("disable_radix_cache") is not True and not _is_decode(view)


def _has_extra_buffer(view: ServiceView) -> bool:
    """Whether states are kept in extra_buffer: because it is written, or because auto chooses it."""
    strategy = view.value(_name(view))
    if strategy == "auto" and view.since("0.5.14"):
        return (view.number("page_size") or 1) > 1 or view.value("disable_overlap_schedule") is not True
    return strategy in _EXTRA


def _is_decode(view: ServiceView) -> bool:
    """The decode half of a pair runs without a prefix cache, unless asked for one."""
    return view.value("disaggregation_mode") == "decode"


@service_rule("SGL430", "error", needs="model")
def drafts_without_states(view: ServiceView) -> Iterator[Found]:
    """Speculative decoding needs mamba_scheduler_strategy extra_buffer for this model.

    Why: Releases 0.5.10 to 0.5.13 refuse speculative decoding for models with linear attention or Mamba while the
    prefix cache is on, unless mamba_scheduler_strategy is extra_buffer. The default is no_buffer.

    Evidence: sglang 0.5.10 to 0.5.13 server_args.py, _handle_mamba_radix_cache: "not compatible with radix cache when
    using --mamba-scheduler-strategy no_buffer".

    Fix: Write extra_buffer (for 0.5.10 with SGLANG_ENABLE_SPEC_V2=1), or set disable_radix_cache.
    """
    is_refused = view.since("0.5.10") and not view.since("0.5.14") and _keeps_prefixes(view)
    if is_refused and algorithm(view) and view.value(_OLD) not in _EXTRA:
        is_able = model_class(view) in GATED_DELTA_NET
        yield view.found(
            "speculative_algorithm",
            f"is refused for this model: {_OLD} is not extra_buffer, and the prefix cache is on",
            f"set {_OLD} to extra_buffer" if is_able else "set disable_radix_cache",
            edits=(view.set(_OLD, "extra_buffer"),) if is_able else (view.set("disable_radix_cache", value=True),),
        )


@service_rule("SGL431", "note", needs="model")
def drafts_instead_of_prefixes(view: ServiceView) -> Iterator[Found]:
    """Speculative decoding turns the prefix cache off.

    Why: 0.5.8 and 0.5.9 turn the prefix cache off for models with linear attention or Mamba when there is speculative
    decoding, and say so in their log: prompts that begin alike are computed again each time.

    Evidence: sglang 0.5.8 and 0.5.9 server_args.py, _handle_mamba_radix_cache.

    Fix: Set mamba_scheduler_strategy to extra_buffer with SGLANG_ENABLE_SPEC_V2=1, or use a newer release.
    """
    is_old = view.since("0.5.8") and not view.since("0.5.10") and _keeps_prefixes(view)
    if is_old and algorithm(view) and view.value(_OLD) not in _EXTRA:
        yield view.found(
            "speculative_algorithm",
            "turns the prefix cache off for this model: prompts that begin alike are computed again",
            f"set {_OLD} to extra_buffer, with SGLANG_ENABLE_SPEC_V2=1",
        )


@service_rule("SGL432", "error", needs="model")
def one_state_refused(view: ServiceView) -> Iterator[Found]:
    """mamba_radix_cache_strategy no_buffer needs other settings.

    Why: From 0.5.14 a written no_buffer is taken only with disable_overlap_schedule, pages of one token, and another
    attention backend than trtllm_mha. Left out, SGLang chooses extra_buffer where the model has it.

    Evidence: sglang 0.5.14 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/mamba_hook.py,
    validate_mamba_no_buffer.

    Fix: Remove the strategy, or set what the finding names.
    """
    name = _name(view)
    if not (view.since("0.5.14") and _keeps_prefixes(view) and view.value(name) == "no_buffer"):
        return
    page, missing = view.number("page_size"), []
    if view.value("disable_overlap_schedule") is not True:
        missing.append("disable_overlap_schedule")
    if page not in (None, 1):
        missing.append("page_size 1")
    if view.value("attention_backend") == "trtllm_mha":
        missing.append("another attention_backend")
    if missing:
        yield view.found(name, f"no_buffer needs {' and '.join(missing)}", "remove it", edits=(view.remove(name),))


@service_rule("SGL433", "error", needs="model")
def states_without_prefixes(view: ServiceView) -> Iterator[Found]:
    """mamba_scheduler_strategy extra_buffer needs the prefix cache.

    Why: Releases 0.5.10 to 0.5.13 refuse extra_buffer beside disable_radix_cache: without a prefix cache there are no
    states to keep.

    Evidence: sglang 0.5.10 to 0.5.13 server_args.py, _handle_mamba_radix_cache.

    Fix: Remove mamba_scheduler_strategy; the overlap scheduler works without.
    """
    is_refusing = view.since("0.5.10") and not view.since("0.5.14") and model_class(view) in GATED_DELTA_NET
    if is_refusing and view.value(_OLD) in _EXTRA and view.value("disable_radix_cache") is True:
        yield view.found(
            _OLD,
            f"{view.value(_OLD)} is refused beside disable_radix_cache",
            "remove it",
            edits=(view.remove(_OLD),),
        )


@service_rule("SGL434", "error", needs="model")
def states_out_of_step(view: ServiceView) -> Iterator[Found]:
    """mamba_track_interval does not fit the page size, or the drafts.

    Why: With extra_buffer, which auto chooses from 0.5.14 on, a state is kept every mamba_track_interval tokens, 256
    unless written. SGLang refuses an interval that is no multiple of the page size, or smaller than the draft tokens of
    speculative decoding.

    Evidence: sglang 0.5.7 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/mamba_hook.py,
    validate_mamba_extra_buffer; 0.5.14 to 0.5.23: mamba_radix_cache_strategy == "auto".

    Fix: Make mamba_track_interval a multiple of the page size, and not less than speculative_num_draft_tokens.
    """
    interval, forced = view.number("mamba_track_interval"), pages(view)
    if not _keeps_prefixes(view) or not _has_extra_buffer(view) or interval is None:
        return
    page = forced[1] if forced is not None else view.number("page_size")
    drafts = view.number("speculative_num_draft_tokens")
    at = "mamba_track_interval" if view.written("mamba_track_interval") else "page_size"
    if page is not None and page > 0 and interval % page:
        yield view.found(
            at,
            f"states are kept every {interval} tokens, no multiple of the page size ({page})",
            "make one a multiple of the other",
        )
    elif algorithm(view) and drafts is not None and interval < drafts:
        yield view.found(
            "mamba_track_interval",
            f"{interval} is less than speculative_num_draft_tokens ({drafts})",
            f"write {drafts} or more",
        )


def _taken(view: ServiceView, major: int) -> frozenset[str]:
    """The attention backends that SGLang takes beside gated delta net on Blackwell."""
    if not view.since("0.5.7"):
        return frozenset({"triton"})
    if not view.since("0.5.10"):
        return frozenset({"triton", "trtllm_mha"})
    if not view.since("0.5.16"):
        return frozenset({"triton", "trtllm_mha", "fa4", "flashinfer"})
    # 0.5.16 to 0.5.20 refuse flashinfer on SM100 by their own list; it came back in between.
    return frozenset({"triton", "trtllm_mha", "flashinfer"} | (set() if major == _SM120 else {"fa4"}))


@service_rule("SGL435", "error", needs="host")
def attention_refused_beside_states(view: ServiceView) -> Iterator[Found]:
    """The attention backend is not taken for this model on Blackwell.

    Why: For Qwen3-Next and Qwen3.5 SGLang takes a few attention backends only on Blackwell, and stops on others: triton
    in every release, trtllm_mha from 0.5.7, flashinfer and fa4 from 0.5.10 (fa4 not on SM120). Up to 0.5.9 it chooses
    flashinfer by itself on SM120, and then refuses it.

    Evidence: sglang 0.5.5 to 0.5.23 srt/layers/attention/attention_registry.py, attn_backend_wrapper.

    Fix: Write attention_backend: triton.
    """
    found = capability(view)
    if found is None or found[0] not in (10, 11, 12) or model_class(view) not in GATED_DELTA_NET:
        return
    taken, used = _taken(view, found[0]), attention_backends(view)
    if not view.since("0.5.16"):
        used = {name: used[name] for name in used if name == "attention_backend" and len(used) == 1}
    for name, backend in used.items():
        if backend not in taken:
            yield view.found(name, f"{backend} is refused for this model on {architecture(view)}", "write triton")
            return
    is_unset = not any(view.written(f"{half}attention_backend") for half in ("", "prefill_", "decode_"))
    if is_unset and found[0] == _SM120 and not view.since("0.5.10"):
        yield view.found(
            "attention_backend",
            f"is not set: on {architecture(view)} SGLang {view.version} chooses flashinfer, which it then refuses here",
            "write triton",
            edits=(view.set("attention_backend", "triton"),),
        )


@service_rule("SGL436", "error", needs="model")
def states_of_no_layer(view: ServiceView) -> Iterator[Found]:
    """extra_buffer is for models that keep states, and this one keeps none.

    Why: From 0.5.21 SGLang refuses extra_buffer for a model with attention in every layer. Older releases take it and
    do nothing with it.

    Evidence: sglang 0.5.21 to 0.5.23 arg_groups/model_hook.py, handle_mamba_radix_cache: "needs mamba state".

    Fix: Remove the strategy.
    """
    name = _name(view)
    is_on = view.value("disable_radix_cache") is not True and not _is_decode(view)
    if view.since("0.5.21") and model_class(view) in _WITHOUT and is_on and view.value(name) in _EXTRA:
        yield view.found(
            name,
            f"{view.value(name)} is refused for {model_class(view)}, which keeps no states",
            "remove it",
            edits=(view.remove(name),),
            safe=True,
        )
