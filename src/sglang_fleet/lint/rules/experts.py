"""Experts: how tokens get to them, and the kernels that compute them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import (
    algorithm,
    attention_replicas,
    expert_parallel,
    model_class,
)
from sglang_fleet.lint.rules.graphs import captured_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

LIMIT = "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK"
_USUAL, _MOST = 128, 1024
# The least chunk of a prompt that SGLang chooses by itself: 0.5.5 to 0.5.23, the table by GPU memory.
_LEAST_CHUNK = 2048


def _limit(view: ServiceView) -> int | None:
    """The most tokens that a GPU may send in one step of DeepEP's low latency; None when it is not readable."""
    text = view.environment.get(LIMIT, str(_USUAL)).strip()
    return int(text) if text.isdecimal() else None


@service_rule("SGL140", "warning")
def low_latency_beside_prompts(view: ServiceView) -> Iterator[Found]:
    """deepep_mode low_latency is for decode steps, and this server computes prompts too.

    Why: With deepep_mode low_latency each GPU sends at most SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK tokens in
    one step, 128 unless set, 1024 at most. A chunk of a prompt has more: DeepEP's assertion ends the server at the
    first longer prompt. auto uses the normal mode for prompts and low latency for decode steps.

    Evidence: sglang 0.5.5 to 0.5.23 srt/layers/moe/token_dispatcher/deepep.py: "the actual batch size in the decoding
    engine should be less than 256", num_max_dispatch_tokens_per_rank <= 1024.

    Fix: Write auto, or make chunked_prefill_size small enough.
    """
    is_low = view.value("moe_a2a_backend") == "deepep" and view.value("deepep_mode") == "low_latency"
    limit, chunk = _limit(view), view.number("chunked_prefill_size")
    if not is_low or limit is None or view.value("disaggregation_mode") == "decode":
        return
    whole = _LEAST_CHUNK if chunk is None else chunk
    share = whole // (view.number("tp_size") or 1)
    if whole <= 0 or share > limit:
        tokens = f"{share} tokens or more" if whole > 0 else "any number of tokens"
        yield view.found(
            "deepep_mode",
            f"low_latency sends at most {limit} tokens from a GPU at once; a chunk of a prompt has {tokens} for each",
            "write auto, or remove it",
            edits=(view.remove("deepep_mode"),),
        )


@service_rule("SGL141", "error")
def dispatch_limit_too_high(view: ServiceView) -> Iterator[Found]:
    """DeepEP sends at most 1024 tokens from a GPU.

    Why: SGLang stops when SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK is higher: DeepEP counts finished tokens with
    a tag of 1024.

    Evidence: sglang 0.5.5 to 0.5.23 srt/layers/moe/token_dispatcher/deepep.py: the assertion on
    num_max_dispatch_tokens_per_rank.

    Fix: Write 1024 or less. Each token that may be sent takes memory.
    """
    limit = _limit(view)
    if view.value("moe_a2a_backend") == "deepep" and limit is not None and limit > _MOST:
        yield view.found_at(
            f"environment.{LIMIT}", f"is {limit}, and SGLang refuses more than {_MOST}", f"write {_MOST} or less"
        )


@service_rule("SGL142", "warning")
def graphs_beyond_dispatch_limit(view: ServiceView) -> Iterator[Found]:
    """The largest captured batch has more tokens than DeepEP sends.

    Why: Decode steps use DeepEP's low latency, where each GPU sends at most
    SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK tokens, 128 unless set. The largest batch that is captured, times the
    draft tokens of speculative decoding, divided among the GPUs of an attention group, must not be more: DeepEP's
    assertion ends the start in capture.

    Evidence: sglang 0.5.5 to 0.5.23 srt/layers/moe/token_dispatcher/deepep.py, srt/environ.py.

    Fix: Raise the variable (1024 at most), or capture smaller batches.
    """
    limit, captured = _limit(view), captured_batch(view)
    is_used = view.value("moe_a2a_backend") == "deepep" and view.value("deepep_mode") != "normal"
    if not is_used or limit is None or captured is None or view.value("disaggregation_mode") == "prefill":
        return
    running, groups = view.number("max_running_requests"), attention_replicas(view)
    batch = captured[1] if running is None else min(captured[1], max(running // groups, 1))
    drafts = (view.number("speculative_num_draft_tokens") or 1) if algorithm(view) else 1
    tokens = batch * drafts // max((view.number("tp_size") or 1) // groups, 1)
    if tokens > limit:
        yield view.found(
            captured[0],
            f"captures a batch with {tokens} tokens for each GPU, and DeepEP sends at most {limit}",
            f"set {LIMIT} to {tokens} or more, or capture smaller batches",
        )


def _runners(view: ServiceView, exchange: object) -> frozenset[str] | None:
    """The kernels for experts that SGLang takes with an exchange; None: any, or not known here."""
    if exchange == "flashinfer":
        allowed = {"flashinfer_cutlass"}
        allowed |= {"flashinfer_cutedsl"} if view.since("0.5.13") else set()
        allowed |= {"flashinfer_trtllm_routed"} if view.since("0.5.15") else set()
        allowed |= {"flashinfer_trtllm", "deep_gemm"} if view.since("0.5.18") else set()
        return frozenset(allowed)
    known = {"deepep_v2": {"deep_gemm"}, "pplx": {"deep_gemm"}, "flashinfer_megamoe": {"flashinfer_megamoe"}}
    return frozenset(known[str(exchange)]) if exchange in known else None


@service_rule("SGL143", "error")
def runner_refused_beside_exchange(view: ServiceView) -> Iterator[Found]:
    """moe_runner_backend does not go with moe_a2a_backend.

    Why: moe_a2a_backend decides the form in which tokens arrive at the experts, and each moe_runner_backend takes some
    forms only. SGLang stops at its start: flashinfer wants its own kernels, deepep_v2 and pplx want deep_gemm,
    flashinfer_megamoe itself; flashinfer_cutedsl takes deepep and (from 0.5.13) flashinfer.

    Evidence: sglang 0.5.9 to 0.5.18 server_args.py, _handle_a2a_moe and _handle_moe_kernel_config; 0.5.19 to 0.5.23
    arg_groups/moe_hook.py.

    Fix: Remove moe_runner_backend: auto chooses by the exchange, the GPU and the model.
    """
    exchange, runner = view.value("moe_a2a_backend"), view.value("moe_runner_backend")
    allowed = _runners(view, exchange)
    takes = {None, "none", "deepep", "flashinfer"} if view.since("0.5.13") else {None, "none", "deepep"}
    is_refused = runner == "flashinfer_cutedsl" and exchange not in takes and view.since("0.5.11")
    if (allowed is not None and runner not in (None, "auto", *allowed)) or is_refused:
        yield view.found(
            "moe_runner_backend",
            f"{runner} is refused with moe_a2a_backend {exchange}",
            f"write {' or '.join(sorted(allowed))}" if allowed else "remove it",
        )


@service_rule("SGL144", "error")
def exchange_needs_attention_replicas(view: ServiceView) -> Iterator[Found]:
    """moe_a2a_backend needs DP attention.

    Why: moe_a2a_backend flashinfer (from 0.5.13) and flashinfer_megamoe need as many groups of DP attention as tp_size
    has GPUs; pplx needs two or more. SGLang stops at its start.

    Evidence: sglang 0.5.13 to 0.5.18 server_args.py, _handle_a2a_moe: "only supported with dp_size == tp_size and
    --enable-dp-attention"; 0.5.19 to 0.5.23 arg_groups/moe_hook.py, which lets Muse Spark do without.

    Fix: Set attn_dp_size (before 0.5.22 dp_size with enable_dp_attention) to tp_size, or use another exchange.
    """
    exchange, tensor, groups = view.value("moe_a2a_backend"), view.number("tp_size") or 1, attention_replicas(view)
    is_exempt = view.written("enable_layernorm_sp") or (model_class(view) or "").startswith("MuseSpark")
    wants_all = exchange == "flashinfer_megamoe" or (exchange == "flashinfer" and view.since("0.5.13"))
    if wants_all and (groups != tensor or groups == 1) and not is_exempt:
        name = "attn_dp_size" if view.since("0.5.22") else "dp_size with enable_dp_attention"
        yield view.found(
            "moe_a2a_backend", f"{exchange} needs {name} equal to tp_size ({tensor})", f"set {name} to {tensor}"
        )
    elif exchange == "pplx" and groups < 2:  # noqa: PLR2004  # one group exchanges nothing
        yield view.found(
            "moe_a2a_backend", "pplx needs two groups of DP attention or more", "set attn_dp_size to 2 or more"
        )


def _quantizations(view: ServiceView, runner: object) -> frozenset[str] | None:
    """The quantizations that some kernels for experts take, where one is written; None: any, or not known here."""
    since = view.since
    nvidia = {"modelopt_fp4"} | ({"modelopt_fp8"} if since("0.5.7") else set())
    nvidia |= {"modelopt_mixed"} if since("0.5.10") else set()
    if runner == "flashinfer_cutlass":
        return frozenset(nvidia)
    if runner in ("flashinfer_trtllm", "experimental_sgl_trtllm"):
        found = nvidia | {"fp8", "modelopt_fp8"} | ({"compressed-tensors"} if since("0.5.7") else set())
        return frozenset(
            found | ({"mxfp8"} if since("0.5.10") else set()) | ({"nvfp4_online"} if since("0.5.14") else set())
        )
    if runner == "flashinfer_trtllm_routed":
        found = {"fp8", "mxfp8", "modelopt_fp4"} | ({"modelopt_mixed", "nvfp4_online"} if since("0.5.14") else set())
        return frozenset(found | ({"minimax_m3_nvfp4"} if since("0.5.21") else set()))
    return None


@service_rule("SGL145", "error")
def runner_refused_beside_quantization(view: ServiceView) -> Iterator[Found]:
    """moe_runner_backend does not go with this quantization, or this ep_size.

    Why: SGLang compares a written moe_runner_backend with quantization and ep_size, and stops at its start:
    flashinfer_cutlass and flashinfer_cutedsl take ep_size 1 or tp_size only, cutlass with FP8 takes 1 only.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, _handle_moe_kernel_config; 0.5.19 to 0.5.23 arg_groups/moe_hook.py,
    handle_moe_kernel_config.

    Fix: Remove moe_runner_backend: auto chooses by the GPU and the model.
    """
    runner, method = view.value("moe_runner_backend"), view.value("quantization")
    if method == "mxfp8" and not view.since("0.5.10"):
        return  # 0.5.9 replaces the runner by cutlass, whatever is written
    allowed, expert, tensor = _quantizations(view, runner), expert_parallel(view), view.number("tp_size") or 1
    if allowed is not None and isinstance(method, str) and method not in (*allowed, "unquant"):
        yield view.found("moe_runner_backend", f"{runner} is refused with quantization {method}", "remove it")
    elif runner in ("flashinfer_cutlass", "flashinfer_cutedsl") and expert not in (1, tensor):
        is_late = runner == "flashinfer_cutlass" or view.since("0.5.11")
        if is_late:
            yield view.found(
                "ep_size", f"{expert} is refused with {runner}: 1 or tp_size ({tensor})", f"write 1 or {tensor}"
            )
    elif runner == "cutlass" and method == "fp8" and expert > 1:
        yield view.found(
            "ep_size",
            f"{expert} is refused with cutlass for FP8, which takes 1",
            "remove ep_size or moe_runner_backend",
        )


@service_rule("SGL146", "error")
def balancing_without_experts_to_move(view: ServiceView) -> Iterator[Found]:
    """enable_eplb balances experts between GPUs, and no two GPUs share them.

    Why: enable_eplb moves experts between the GPUs of ep_size. SGLang refuses it with ep_size 1.

    Evidence: sglang 0.5.5 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/parallel_hook.py,
    handle_eplb_and_dispatch: ep_size > 1.

    Fix: Set ep_size, or remove enable_eplb.
    """
    if view.value("enable_eplb") is True and expert_parallel(view) == 1 and not view.written("elastic_ep_join_mode"):
        yield view.found(
            "enable_eplb", "is refused with ep_size 1: there is nothing to balance", "set ep_size, or remove it"
        )
