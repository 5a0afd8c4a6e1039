"""What cannot fit, or only badly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sglang_fleet.sizing.capacity import GIB, page_size
from sglang_fleet.sizing.result import runtime
from sglang_fleet.sizing.written import optional_integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_fleet.sizing.result import Sizing

Kind = Literal["weights", "context", "requests"]

LEAST_TOKENS_A_REQUEST = 1024
"""With fewer tokens for each of max_running_requests, running requests are stopped and begun anew all the time."""


@dataclass(frozen=True, slots=True)
class CannotFit:
    """Something that does not fit.

    Attributes:
        kind: "weights": they leave nothing for the KV cache, and SGLang does not start; "context": one request of the
            longest context does not fit; "requests": max_running_requests is more than can run.
        argument: the argument to look at.
        message: what is wrong, as the end of a sentence.
        fix: what to do.
        is_certain: whether it holds even if everything that was assumed errs. Only that deserves an error.
    """

    kind: Kind
    argument: str
    message: str
    fix: str
    is_certain: bool


def problems(sizing: Sizing, args: Mapping[str, object]) -> tuple[CannotFit, ...]:
    """What cannot fit; empty where the GPU's memory or the model is not known well enough.

    Args:
        sizing: the service's sizes.
        args: SGLang's arguments by their own names, as written.
    """
    return (*_weights(sizing), *_context(sizing, args), *_requests(sizing, args))


def _weights(sizing: Sizing) -> Iterator[CannotFit]:
    weights, fraction, memory = sizing.weights, sizing.fraction, sizing.gpu_memory
    if weights is None or fraction is None or memory is None or sizing.budget is None or sizing.budget > 0:
        return
    if sizing.is_less:
        return
    more = math.ceil(weights / max(memory - runtime(sizing.layout), 1) * 100) / 100
    yield CannotFit(
        "weights",
        "mem_fraction_static",
        f"weights take {weights / GIB:.1f} GiB of a GPU; {fraction:g} of {memory / GIB:.1f} GiB leaves no KV cache",
        f"raise it to more than {more:.2f}" if more < _HIGHEST_FRACTION else "use more GPUs (tp_size, pp_size)",
        is_certain=sizing.source != "config" and weights > fraction * memory,
    )


def _context(sizing: Sizing, args: Mapping[str, object]) -> Iterator[CannotFit]:
    if not sizing.tokens or not sizing.context or sizing.tokens >= sizing.context:
        return
    if _is_limited(sizing.tokens, args):
        yield CannotFit(
            "context",
            "max_total_tokens",
            f"{sizing.tokens:,} tokens of KV cache are fewer than the context of {sizing.context:,}: "
            "longer requests fail",
            "raise it, or remove it",
            is_certain=False,
        )
    elif sizing.bound != "at least":
        yield CannotFit(
            "context",
            "context_length",
            f"{sizing.context:,} tokens, but the KV cache holds {sizing.bound} {sizing.tokens:,}: longer requests fail",
            f"lower it to {sizing.tokens // 1024 * 1024 or sizing.tokens:,}, or raise mem_fraction_static",
            is_certain=False,
        )


def _is_limited(tokens: int, args: Mapping[str, object]) -> bool:
    """Whether max_total_tokens, and not the memory, is what so many tokens come from."""
    limit = optional_integer(args, "max_total_tokens")
    page = page_size(args)
    return limit is not None and tokens >= limit // page * page


def _requests(sizing: Sizing, args: Mapping[str, object]) -> Iterator[CannotFit]:
    written = optional_integer(args, "max_running_requests")
    if not written or not sizing.all_tokens or sizing.bound == "at least":
        return
    each = sizing.all_tokens // written
    if each >= min(LEAST_TOKENS_A_REQUEST, sizing.context or LEAST_TOKENS_A_REQUEST):
        return
    yield CannotFit(
        "requests",
        "max_running_requests",
        f"{written:,} requests share {sizing.bound} {sizing.all_tokens:,} tokens of KV cache: {each:,} for each",
        "lower it, so that requests wait instead of being stopped and begun anew"
        + (", or raise max_total_tokens" if _is_limited(sizing.all_tokens // sizing.layout.schedulers, args) else ""),
        is_certain=False,
    )


_HIGHEST_FRACTION = 0.97  # above, nothing is left for activations and CUDA graphs
