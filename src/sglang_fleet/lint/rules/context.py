"""The length of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import is_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView


@service_rule("SGL212", "error", needs="model")
def context_beyond_model(view: ServiceView) -> Iterator[Found]:
    """The context is longer than the model's.

    Why: SGLang derives the longest context from config.json and refuses a longer one: answers beyond it may be wrong,
    and kernels may read outside of their tables.

    Evidence: sglang 0.5.9 to 0.5.23 srt/configs/model_config.py, _derive_context_length.

    Fix: Lower context_length. If the model may be stretched, set its rope scaling with json_model_override_args; the
    variable SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN only takes the check away.
    """
    longest = view.model.context_length if view.model is not None else None
    asked = view.number("context_length")
    may = is_on(view.environment.get("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"))
    if longest and asked is not None and asked > longest and not (may or view.written("json_model_override_args")):
        yield view.found("context_length", f"{asked} is more than the model's {longest}", f"lower it to {longest}")


@service_rule("SGL213", "warning")
def pool_below_context(view: ServiceView) -> Iterator[Found]:
    """The KV cache holds less than one request of full length.

    Why: max_total_tokens limits the KV cache of a replica. A request that needs more than all of it is refused,
    although context_length, or the model's own context where none is set, would allow it.

    Evidence: sglang 0.5.9 to 0.5.23 srt/managers/tp_worker.py: max_req_len is the smaller of both.

    Fix: Remove max_total_tokens, which is meant for debugging, or lower context_length to what is true.
    """
    pool, context, whose = view.number("max_total_tokens"), view.number("context_length"), "context_length"
    if context is None and view.model is not None and not view.written("json_model_override_args"):
        context, whose = view.model.context_length, "the model's context"
    if pool is not None and context is not None and pool < context:
        yield view.found(
            "max_total_tokens",
            f"{pool} tokens of KV cache are fewer than {whose} ({context}): the longest requests are refused",
            f"remove it, or {'set' if view.number('context_length') is None else 'lower'} context_length",
        )


def _scaling(view: ServiceView) -> Mapping[str, object]:
    """The rope scaling in json_model_override_args, where nothing else there says how long the context is."""
    value = view.value("json_model_override_args")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, Mapping) or "max_position_embeddings" in value or "text_config" in value:
        return {}
    scaling = value.get("rope_scaling")
    return scaling if isinstance(scaling, Mapping) else {}


@service_rule("SGL219", "warning")
def stretched_context_unused(view: ServiceView) -> Iterator[Found]:
    """The model's context is stretched, and SGLang does not know how long it is now.

    Why: With original_max_position_embeddings in rope_scaling SGLang takes max_position_embeddings of config.json for
    the stretched length, and does not multiply it. Where config.json has the model's own length, as Qwen's do, requests
    beyond it are refused although the positions are scaled, and short ones are answered a little worse for nothing.

    Evidence: sglang 0.5.5 to 0.5.23 get_context_length (srt/utils/hf_transformers_utils.py,
    srt/utils/hf_transformers/common.py): the factor is 1 with original_max_position_embeddings.

    Fix: Set context_length to the stretched length, with SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1, or put
    max_position_embeddings into json_model_override_args.
    """
    scaling = _scaling(view)
    factor = scaling.get("factor")
    is_more = isinstance(factor, (int, float)) and not isinstance(factor, bool) and factor > 1
    if is_more and "original_max_position_embeddings" in scaling and view.number("context_length") is None:
        yield view.found(
            "json_model_override_args",
            f"scales positions by {factor:g}, and the context stays as config.json has it: context_length is not set",
            "set context_length to the stretched length",
        )
