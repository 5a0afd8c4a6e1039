"""The sizes of a service for people: 80 columns."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

from sglang_fleet.problems import names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.cli.sizing import Sized
    from sglang_fleet.sizing import Sizing, Stage

_WIDTH = 80
_HOSTS_NAMED = 3
_GIB = 1 << 30
_LABEL = 12


def shown(one: Sized) -> str:
    """A paragraph of text, with its line ends."""
    lines = [f"{one.service} on {names(one.hosts, most=_HOSTS_NAMED)}"]
    lines += _wrapped(_model(one))
    if one.sizing is not None:
        lines += ["", *_table(one.sizing), "", *_summary(one.sizing)]
    if one.failure:
        lines += _wrapped(f"not known: {one.failure}")
    for rule, argument, message in one.refused:
        lines += _wrapped(f"SGLang refuses this: {argument}: {message} ({rule})", hanging=2)
    for problem in one.problems:
        level = "error" if problem.is_certain else "warning"
        lines += _wrapped(f"{level}: {problem.argument}: {problem.message}; {problem.fix}", hanging=2)
    if one.sizing is not None and one.sizing.assumptions:
        lines += ["  assumed:"]
        for sentence in one.sizing.assumptions:
            lines += _wrapped(f"- {sentence}", hanging=2)
    return "\n".join(lines) + "\n"


def _model(one: Sized) -> str:
    facts = one.facts
    if facts is None:
        return one.model
    said = [
        next(iter(facts.architectures), "an architecture without a name"),
        f"{facts.num_hidden_layers} layers" if facts.num_hidden_layers else "",
        facts.quantization or facts.torch_dtype or "",
    ]
    return f"{one.model}: {', '.join(part for part in said if part)}"


def _table(sizing: Sizing) -> Iterator[str]:
    """A line for each run of pipeline stages that are alike."""
    yield _row("GPUs", "layers each", "weights", "cache a token")
    tensor = sizing.layout.tensor
    number = 0
    for looks, group in groupby(sizing.stages, key=_looks):
        count = len(list(group))
        first, last = number * tensor, (number + count) * tensor - 1
        yield _row(str(first) if first == last else f"{first}-{last}", *looks)
        number += count


def _looks(stage: Stage) -> tuple[str, str, str]:
    weights = "not known" if stage.weights is None else gib(stage.weights)
    cache = "not known" if stage.cache is None else kib(stage.cache)
    return str(len(stage.layers)), weights, cache


def _row(gpus: str, layers: str, weights: str, cache: str) -> str:
    return f"  {gpus:<{_LABEL}}{layers:>12}{weights:>14}{cache:>18}"


def _summary(sizing: Sizing) -> Iterator[str]:
    layout, cache = sizing.layout, sizing.cache
    widths = (("tp", layout.tensor), ("pp", len(layout.stages)), ("attention dp", layout.schedulers))
    yield from _item("layout", ", ".join(f"{name} {width}" for name, width in widths if width > 1) or "one GPU")
    if layout.replicas > 1:
        yield from _item("replicas", f"{layout.replicas}, each as above; numbers below are of one")
    if isinstance(cache, str):
        yield from _item("KV cache", f"not known: {cache}")
    else:
        heads = f", {cache.heads} KV heads a GPU" if cache.heads > 1 else ", 1 KV head a GPU" if cache.heads else ""
        again = ", the same on several GPUs" if cache.is_repeated else ""
        yield from _item("KV cache", f"{cache.kind} in {cache.dtype}{heads}{again}")
    if sizing.gpu_memory is None:
        yield from _item("tokens", "give --gpu-memory to know how many fit")
        return
    if sizing.fraction is not None:
        yield from _item("memory", _memory(sizing))
    yield from _item("tokens", _tokens(sizing))
    if sizing.tokens != 0:
        yield from _item("requests", _requests(sizing))


def _memory(sizing: Sizing) -> str:
    total = f"{gib(sizing.gpu_memory or 0)} a GPU, mem_fraction_static {sizing.fraction:g}"
    if sizing.budget is None:
        return total
    fullest = " where weights take most" if len(sizing.layout.stages) > 1 else ""
    return f"{total}: {gib(max(sizing.budget, 0))} for KV cache{fullest}"


def _tokens(sizing: Sizing) -> str:
    if sizing.tokens is None:
        return "not known"
    if not sizing.tokens:
        return "none: the weights leave no room"
    each = " in each attention dp group" if sizing.layout.schedulers > 1 else ""
    return f"{sizing.bound} {rounded(sizing.tokens)}{each}"


def _requests(sizing: Sizing) -> str:
    if sizing.full_requests is None:
        return f"{sizing.running:,} at once, if they fit" if sizing.running else "not known"
    full = f"{sizing.bound} {sizing.full_requests:,} of the full {sizing.context:,} tokens"
    return f"{full}; no more than {sizing.running:,} at once" if sizing.running is not None else full


def gib(size: int) -> str:
    """Bytes in GiB."""
    return f"{size / _GIB:,.1f} GiB"


def kib(size: int) -> str:
    """Bytes in KiB."""
    return f"{size / 1024:,.2f} KiB"


def rounded(count: int) -> str:
    """A number with the three digits that such an estimate is good for."""
    digits = max(len(str(count)) - 3, 0)
    return f"{count // 10**digits * 10**digits:,}"


def _item(label: str, text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=f"  {label:<{_LABEL}}",
        subsequent_indent=" " * (_LABEL + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _wrapped(text: str, *, hanging: int = 0) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  " + " " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
