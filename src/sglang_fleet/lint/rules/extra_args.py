"""Words at the end of the command line that the release does not understand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.masking import mask

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

_LEFT_OVER = re.compile(r"(?:after `[^`]*`|at the beginning) belongs to no argument$")
_FIXES = ("did you mean", "use", "write", "remove", "put it")


def _said(view: ServiceView, problem: str) -> tuple[str, str]:
    """What is wrong, and what to do, of a sentence about the command line."""
    left_over = _LEFT_OVER.search(problem)
    if left_over:  # whose words are not repeated: nothing tells that they are no secret
        return f"a word {left_over[0]}".replace("`", ""), "remove it, or put the flag that it belongs to before it"
    message, _, hint = mask(problem).replace("`", "").rpartition("; ")
    if hint.startswith(_FIXES):
        if hint.startswith("did"):
            return message, f"{hint} If so, write that in args"
        return message, f"in args, {hint}" if hint.startswith(("use", "write")) else hint
    name = problem.removeprefix("`").partition("`")[0]
    known = view.catalogue.find(name)
    if known is not None and "_" in name:  # the settings may have either, the command line may not
        return f"{name}: no such argument in SGLang {view.catalogue.version}", f"write {known.flag}, with hyphens"
    return mask(problem).replace("`", ""), "correct it, or waive this if your build of SGLang has it"


@service_rule("SGL009", "warning")
def extra_args_not_understood(view: ServiceView) -> Iterator[Found]:
    """extra_args holds something that this release does not understand.

    Why: The words of extra_args are put at the end of the command line as they are. SGLang ends at once with
    "unrecognized arguments" when it does not know one of them, and the server never starts. They are meant for a build
    of your own, whose arguments nobody else knows. A flag of another server, such as one of vLLM's, mostly has a
    counterpart in SGLang under another name.

    Evidence: SGLang's command line is an argparse parser that refuses what it does not know (srt/server_args.py); the
    arguments of the pinned release, as the catalogue has them.

    Fix: Write the counterpart that the finding names as a key of args, and remove the flag from extra_args. If your
    build of SGLang has the flag, waive this.
    """
    line = view.command_line
    if line is None:
        return
    missing = {f"`{argument.flag}` is required" for argument in view.catalogue.arguments if argument.required}
    for problem in line.problems:
        if problem not in missing:
            yield view.found_at("extra_args", *_said(view, problem))
