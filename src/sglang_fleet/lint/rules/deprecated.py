"""What a release still takes, and will not for long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.catalog import Argument
    from sglang_fleet.lint.found import Edit, Found
    from sglang_fleet.lint.views import ServiceView

# Rules of their own say more about these.
_ELSEWHERE = frozenset({"disable_cuda_graph", "enable_dp_attention"})
# 0.5.14 to 0.5.23, _handle_deprecated_args and handle_deprecated_args: what SGLang itself makes of these switches.
_SWITCHES = {
    "disable_fast_image_processor": ("image_processor_backend", "pil"),
    "enable_flashinfer_allreduce_fusion": ("flashinfer_allreduce_fusion_backend", "auto"),
}
_ADVICE = re.compile(r"use --([a-z0-9-]+)")
_PARSERS = {"qwen25": "qwen", "glm45": "glm"}
_BACKENDS = {"compressed": "dsv4"}


def _edits(view: ServiceView, argument: Argument, value: object) -> tuple[Edit, ...]:
    """The changes after which the server does the same; none where that is not certain."""
    name = argument.name
    if name in _SWITCHES and value is True:
        new, meaning = _SWITCHES[name]
        return () if view.written(new) else (view.set(new, meaning), view.remove(name))
    advice = _ADVICE.match(argument.deprecated or "")
    other = view.catalogue.find(advice[1]) if advice else None
    if other is None or view.written(other.name) or other.check(other.name, value) is not None:
        return ()
    # Two flags for one value inside of SGLang.
    is_same = (other.destination, other.kind, other.nargs) == (argument.destination, argument.kind, argument.nargs)
    return (view.rename(name, other.name),) if is_same else ()


@service_rule("SGL004", "note")
def deprecated_argument(view: ServiceView) -> Iterator[Found]:
    """The argument is deprecated in this release.

    Why: The release takes it and says in its log what to write instead. A later one will refuse it, and a refused
    argument keeps the server from starting.

    Evidence: the help text of the argument in the release's own source, as the catalogue has it.

    Fix: Write what the message names. Where both are two names of one setting, the change is offered.
    """
    for name, value in view.args.items():
        argument = view.catalogue.find(name)
        if argument is None or argument.deprecated is None or name in _ELSEWHERE:
            continue
        if value is None or value is False or argument.check(name, value) is not None:
            continue
        edits = _edits(view, argument, value)
        yield view.found(name, "is deprecated", argument.deprecated, edits=edits, safe=bool(edits))


@service_rule("SGL008", "note")
def deprecated_value(view: ServiceView) -> Iterator[Found]:
    """The value is an old name.

    Why: SGLang translates some old names at its start: the tool call parsers qwen25 and glm45, and from 0.5.23 the
    attention backend compressed. It says so in its log, and will refuse them some day.

    Evidence: sglang 0.5.9 to 0.5.18 server_args.py, 0.5.19 to 0.5.23 arg_groups/serving_hook.py,
    handle_deprecated_args.

    Fix: Write the new name. Nothing else changes.
    """
    names = {"tool_call_parser": _PARSERS}
    if view.since("0.5.23"):
        places = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
        names |= dict.fromkeys(places, _BACKENDS)
    for name, renamed in names.items():
        old = view.value(name)
        new = renamed.get(old) if isinstance(old, str) else None
        if new is not None:
            yield view.found(
                name, f"{old} is an old name of {new}", f"write {new}", edits=(view.set(name, new),), safe=True
            )
