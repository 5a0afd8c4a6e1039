"""Speculative decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import EAGLE_FAMILY, algorithm, attention_backends, attention_replicas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

STEPS = "speculative_num_steps"
TOP = "speculative_eagle_topk"
TOKENS = "speculative_num_draft_tokens"
DRAFT = "speculative_draft_model_path"


@service_rule("SGL420", "error")
def numbers_incomplete(view: ServiceView) -> Iterator[Found]:
    """The numbers of speculative decoding go together.

    Why: SGLang chooses speculative_num_steps, speculative_eagle_topk and speculative_num_draft_tokens when none of
    them is written. With some of them it fails at its start: on an assertion without the steps, on a comparison
    without topk.

    Evidence: sglang 0.5.9 server_args.py, _handle_speculative_decoding; 0.5.16 and 0.5.23
    arg_groups/speculative_hook.py, _handle_eagle_family.

    Fix: Write all three, or none.
    """
    given = [name for name in (STEPS, TOP, TOKENS) if view.value(name) is not None]
    if algorithm(view) not in EAGLE_FAMILY or not given or view.value("speculative_adaptive") is True:
        return
    missing = [name for name in (STEPS, TOP) if name not in given]
    if missing:
        yield view.found(given[0], f"is set without {' and '.join(missing)}", "write all three numbers, or none")


@service_rule("SGL421", "note")
def draft_tokens_replaced(view: ServiceView) -> Iterator[Found]:
    """SGLang replaces the written number of draft tokens.

    Why: With speculative_eagle_topk 1 the draft is a chain: one token more than speculative_num_steps. SGLang sets the
    number to that, whatever is written.

    Evidence: sglang 0.5.9 to 0.5.23, "speculative_num_draft_tokens is adjusted to speculative_num_steps + 1".

    Fix: Write that number.
    """
    steps, tokens = view.number(STEPS), view.number(TOKENS)
    is_chain = algorithm(view) in EAGLE_FAMILY and view.number(TOP) == 1
    if not is_chain or steps is None or tokens is None or view.value("speculative_adaptive") is True:
        return
    if tokens != steps + 1:
        yield view.found(
            TOKENS,
            f"{tokens} is replaced by {steps + 1}: a chain of {steps} steps",
            f"write {steps + 1}",
            edits=(view.set(TOKENS, steps + 1),),
            safe=True,
        )


@service_rule("SGL422", "warning")
def draft_without_algorithm(view: ServiceView) -> Iterator[Found]:
    """A draft model is named, and speculative decoding is off.

    Why: Without speculative_algorithm SGLang never loads the draft model, and says nothing.

    Evidence: sglang 0.5.9 to 0.5.23: speculative decoding starts with speculative_algorithm.

    Fix: Set speculative_algorithm, or remove the draft model.
    """
    if view.written(DRAFT) and not algorithm(view):
        yield view.found(DRAFT, "is not used: speculative_algorithm is not set", "set it, or remove this")


@service_rule("SGL423", "error")
def block_draft_missing(view: ServiceView) -> Iterator[Found]:
    """DFLASH needs a draft model.

    Why: SGLang refuses the algorithm without speculative_draft_model_path.

    Evidence: sglang 0.5.16 and 0.5.23 arg_groups/speculative_hook.py.

    Fix: Name the draft model.
    """
    if algorithm(view) == "DFLASH" and view.value(DRAFT) is None:
        yield view.found("speculative_algorithm", "DFLASH needs speculative_draft_model_path", "name the draft model")


@service_rule("SGL424", "warning")
def draft_missing(view: ServiceView) -> Iterator[Found]:
    """No draft model is named.

    Why: EAGLE3 and STANDALONE draft with a model of their own. Without speculative_draft_model_path SGLang loads the
    model itself a second time as its draft, which fails, or is slower than no speculative decoding. Only models that
    carry their draft (DeepSeek and others with multi-token prediction) do without, mostly as EAGLE or NEXTN.

    Evidence: sglang 0.5.23 arg_groups/speculative_hook.py, _handle_eagle_family.

    Fix: Name the draft model.
    """
    is_capture = view.value("enable_return_aux_hidden_states") is True
    if algorithm(view) in ("EAGLE3", "STANDALONE") and view.value(DRAFT) is None and not is_capture:
        yield view.found(
            "speculative_algorithm", f"{algorithm(view)} has no draft model", "set speculative_draft_model_path"
        )


@service_rule("SGL425", "note")
def few_requests_at_once(view: ServiceView) -> Iterator[Found]:
    """SGLang lets 48 requests run at once.

    Why: With speculative decoding, and without max_running_requests, SGLang sets it to 48 and says so in its log. All
    others wait.

    Evidence: sglang 0.5.9 server_args.py, 0.5.13 to 0.5.23 arg_groups/speculative_hook.py.

    Fix: Set max_running_requests to what you need.
    """
    known = EAGLE_FAMILY | {"NGRAM", "DFLASH"}
    if algorithm(view) in known and view.value("max_running_requests") is None:
        yield view.found(
            "speculative_algorithm",
            "sets max_running_requests to 48, as none is written: more requests wait",
            "set max_running_requests",
        )


@service_rule("SGL426", "error")
def refused_beside_speculation(view: ServiceView) -> Iterator[Found]:
    """SGLang refuses this beside speculative decoding.

    Why: trtllm_mha takes drafts in a chain only (speculative_eagle_topk 1), flex_attention takes none, and STANDALONE
    knows no DP attention. SGLang stops at its start.

    Evidence: sglang 0.5.9 server_args.py; 0.5.16 and 0.5.23 arg_groups/speculative_hook.py and attention_hook.py.

    Fix: Choose another attention backend, or write 1.
    """
    name = algorithm(view)
    if not name:
        return
    used = attention_backends(view)
    if name in EAGLE_FAMILY and "trtllm_mha" in used.values() and (view.number(TOP) or 1) > 1:
        yield view.found(TOP, "above 1 is refused by trtllm_mha", "write 1, or choose another attention backend")
    if used.get("attention_backend") == "flex_attention":
        yield view.found("attention_backend", "flex_attention is refused beside speculative decoding", "write triton")
    if name == "STANDALONE" and attention_replicas(view) > 1:
        yield view.found("speculative_algorithm", "STANDALONE is refused beside DP attention", "use EAGLE")
