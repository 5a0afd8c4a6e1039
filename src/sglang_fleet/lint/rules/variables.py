"""Variables that SGLang itself reads, or reads no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.found import Remove, Rename, Set
from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import EAGLE_FAMILY, algorithm, is_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

_V2 = "SGLANG_ENABLE_SPEC_V2"
_OLD_PREFIX, _PREFIX = "SGL_", "SGLANG_"
# Which release stopped reading a variable, and what took its place.
_GONE = {
    _V2: ("0.5.14", "speculative decoding always overlaps; disable_overlap_schedule turns that off"),
    "SGLANG_ENABLE_CP_V2": ("0.5.23", "it is always so now"),
}


def _has_choice(view: ServiceView) -> bool:
    """Whether the release reads SGLANG_ENABLE_SPEC_V2 to choose how it speculates."""
    return view.since("0.5.7") and not view.since("0.5.11")


def _path(view: ServiceView, name: str) -> str:
    return f"services.{view.service.name}.environment.{name}"


@service_rule("SGL340", "note")
def old_prefix(view: ServiceView) -> Iterator[Found]:
    """The variable has SGLang's old prefix.

    Why: SGLang's variables begin with SGLANG_. It still copies one that begins with SGL_ to the new name when it
    starts, overwriting what stands there, and will not do so for ever.

    Evidence: sglang 0.5.9 to 0.5.23 srt/environ.py.

    Fix: Write SGLANG_ instead of SGL_.
    """
    for name in view.environment:
        new = _PREFIX + name.removeprefix(_OLD_PREFIX)
        if name.startswith(_OLD_PREFIX):
            edits = () if new in view.environment else (Rename(_path(view, name), new),)
            yield view.found_at(
                f"environment.{name}", f"is an old name of {new}", f"write {new}", edits=edits, safe=bool(edits)
            )


@service_rule("SGL341", "warning")
def variable_gone(view: ServiceView) -> Iterator[Found]:
    """This release does not read the variable any more.

    Why: A variable that nobody reads is no error: what it was to turn on or off stays as the release has it.

    Evidence: sglang 0.5.14 to 0.5.18 arg_groups/speculative_hook.py: "SGLANG_ENABLE_SPEC_V2 has been removed"; sglang
    0.5.23 srt/environ.py, _DEPRECATED_ENVS.

    Fix: Remove the variable, and set what took its place.
    """
    for name, (version, instead) in _GONE.items():
        if name in view.environment and view.since(version):
            yield view.found_at(
                f"environment.{name}",
                f"is not read by SGLang {view.version}",
                f"remove it: {instead}",
                edits=(Remove(_path(view, name)),),
                safe=True,
            )


@service_rule("SGL342", "note")
def speculation_without_overlap(view: ServiceView) -> Iterator[Found]:
    """Speculative decoding turns the overlap scheduler off.

    Why: Up to 0.5.10 SGLang prepares the next batch while the GPUs work on this one, except with EAGLE, EAGLE3, NEXTN
    and STANDALONE: it turns that off unless SGLANG_ENABLE_SPEC_V2 is set. From 0.5.11 it is on by itself.

    Evidence: sglang 0.5.7 to 0.5.10 server_args.py, _handle_speculative_decoding; 0.5.11 srt/environ.py.

    Fix: Set SGLANG_ENABLE_SPEC_V2 to 1, which takes drafts in a chain only (speculative_eagle_topk 1), or use a newer
    release.
    """
    is_chain = view.number("speculative_eagle_topk") in (None, 1)
    if _has_choice(view) and algorithm(view) in EAGLE_FAMILY and is_chain and _V2 not in view.environment:
        yield view.found(
            "speculative_algorithm",
            f"turns the overlap scheduler off: SGLang {view.version} keeps it on only with {_V2}",
            f"set {_V2} to 1, and measure",
            edits=(Set(_path(view, _V2), "1"),),
        )


@service_rule("SGL343", "error")
def overlap_needs_chain(view: ServiceView) -> Iterator[Found]:
    """SGLANG_ENABLE_SPEC_V2 takes drafts in a chain only.

    Why: From 0.5.7 to 0.5.10 SGLang refuses speculative_eagle_topk above 1 beside SGLANG_ENABLE_SPEC_V2. Newer releases
    take it.

    Evidence: sglang 0.5.7 to 0.5.10 server_args.py: "Spec v2 currently only supports topk = 1".

    Fix: Write speculative_eagle_topk: 1, or remove the variable.
    """
    if _has_choice(view) and algorithm(view) in EAGLE_FAMILY and is_on(view.environment.get(_V2)):
        many = view.number("speculative_eagle_topk") or 1
        if many > 1:
            yield view.found(
                "speculative_eagle_topk", f"{many} is refused beside {_V2}", "write 1, or remove the variable"
            )
