"""Speculative decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import EAGLE_FAMILY, algorithm, attention_backends, attention_replicas, pages

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

    Fix: Write speculative_num_steps + 1.
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
    """Drafts are described, and speculative decoding is off.

    Why: Without speculative_algorithm SGLang never loads the draft model and never reads the numbers of drafts, and
    says nothing.

    Evidence: sglang 0.5.9 to 0.5.23: speculative decoding starts with speculative_algorithm.

    Fix: Set speculative_algorithm, or remove the other settings of speculative decoding.
    """
    written = [name for name in (DRAFT, STEPS, TOP, TOKENS) if view.written(name) and view.value(name) is not None]
    if written and not algorithm(view):
        yield view.found(
            written[0], "is not used: speculative_algorithm is not set", "set speculative_algorithm, or remove it"
        )


@service_rule("SGL423", "error")
def block_draft_missing(view: ServiceView) -> Iterator[Found]:
    """DFLASH needs a draft model.

    Why: SGLang refuses the algorithm without speculative_draft_model_path.

    Evidence: sglang 0.5.16 and 0.5.23 arg_groups/speculative_hook.py.

    Fix: Set speculative_draft_model_path.
    """
    if algorithm(view) == "DFLASH" and view.value(DRAFT) is None:
        yield view.found("speculative_algorithm", "DFLASH needs a draft model", "set speculative_draft_model_path")


@service_rule("SGL424", "warning")
def draft_missing(view: ServiceView) -> Iterator[Found]:
    """The algorithm needs a draft model, and none is named.

    Why: EAGLE3 and STANDALONE draft with a model of their own. Without speculative_draft_model_path SGLang loads the
    model itself a second time as its draft, which fails, or is slower than no speculative decoding. Only models that
    carry their draft (DeepSeek and others with multi-token prediction) do without, mostly as EAGLE or NEXTN.

    Evidence: sglang 0.5.23 arg_groups/speculative_hook.py, _handle_eagle_family.

    Fix: Set speculative_draft_model_path.
    """
    is_capture = view.value("enable_return_aux_hidden_states") is True
    if algorithm(view) in ("EAGLE3", "STANDALONE") and view.value(DRAFT) is None and not is_capture:
        yield view.found(
            "speculative_algorithm", f"{algorithm(view)} has no draft model", "set speculative_draft_model_path"
        )


@service_rule("SGL425", "note")
def few_requests_at_once(view: ServiceView) -> Iterator[Found]:
    """Speculative decoding limits the server to 48 requests at once.

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
            "set max_running_requests to what you need",
        )


@service_rule("SGL426", "error")
def refused_beside_speculation(view: ServiceView) -> Iterator[Found]:
    """A setting does not go with speculative decoding.

    Why: trtllm_mha takes drafts in a chain only (speculative_eagle_topk 1), flex_attention takes none, and STANDALONE
    and NGRAM know no DP attention. SGLang stops at its start.

    Evidence: sglang 0.5.9 server_args.py; 0.5.16 and 0.5.23 arg_groups/speculative_hook.py and attention_hook.py.

    Fix: Choose another attention backend, or, with trtllm_mha, write speculative_eagle_topk: 1.
    """
    name = algorithm(view)
    if not name:
        return
    used = attention_backends(view)
    if name in EAGLE_FAMILY and "trtllm_mha" in used.values() and (view.number(TOP) or 1) > 1:
        yield view.found(TOP, "above 1 is refused by trtllm_mha", "write 1, or choose another attention backend")
    if used.get("attention_backend") == "flex_attention":
        yield view.found("attention_backend", "flex_attention is refused beside speculative decoding", "write triton")
    if name in ("STANDALONE", "NGRAM") and attention_replicas(view) > 1:
        yield view.found("speculative_algorithm", f"{name} is refused beside DP attention", "use EAGLE")


def _trees_on_pages(view: ServiceView) -> frozenset[str]:
    """The attention backends that take drafts in a tree with pages of more than one token."""
    if algorithm(view) == "NGRAM":
        return frozenset({"flashinfer"})
    newer = ({"fa3"} if view.since("0.5.6") else set()) | ({"triton"} if view.since("0.5.13") else set())
    return frozenset({"flashinfer"} | newer)


@service_rule("SGL428", "error")
def tree_on_pages(view: ServiceView) -> Iterator[Found]:
    """Drafts in a tree need another attention backend, or pages of one token.

    Why: With speculative_eagle_topk above 1 the drafts branch, and the branches share pages of the KV cache. Few
    attention backends get that right: flashinfer, from 0.5.7 fa3, from 0.5.13 triton; for NGRAM flashinfer only. SGLang
    refuses others with page_size above 1, which some backends choose themselves. NGRAM branches up to
    speculative_ngram_max_bfs_breadth, 10 unless written.

    Evidence: sglang 0.5.5 to 0.5.12 server_args.py, 0.5.13 to 0.5.23 arg_groups/speculative_hook.py: "unstable and
    produces incorrect results for paged attention backends".

    Fix: Write page_size: 1, or speculative_eagle_topk: 1, or attention_backend: flashinfer.
    """
    name, backend, forced = algorithm(view), view.value("attention_backend"), pages(view)
    width = view.number("speculative_ngram_max_bfs_breadth" if name == "NGRAM" else TOP) or 1
    page = forced[1] if forced is not None else view.number("page_size") or 1
    halves = view.written("prefill_attention_backend") and view.written("decode_attention_backend")
    if name not in EAGLE_FAMILY | {"NGRAM"} or width <= 1 or page <= 1 or halves or not isinstance(backend, str):
        return
    # trtllm_mha refuses trees altogether, which SGL426 says.
    if backend not in _trees_on_pages(view) and not (backend == "trtllm_mha" and name != "NGRAM"):
        at = TOP if name != "NGRAM" else "speculative_algorithm"
        what = f"{width}" if name != "NGRAM" else f"NGRAM with {width} branches"
        yield view.found(at, f"{what} is refused by {backend} with pages of {page} tokens", "write page_size 1")
