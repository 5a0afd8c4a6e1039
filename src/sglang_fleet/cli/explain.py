"""`sglang-fleet explain`: what a rule is about."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.common import Failed, examples, json_option, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.explained import Explanation

_WIDTH = 80


@click.command("explain", epilog=examples("sglang-fleet explain", "sglang-fleet explain SGL201"))
@click.argument("rule", required=False)
@json_option
def command(rule: str | None, *, as_json: bool) -> None:
    """Explain a rule: why it matters, how that is known, what to do.

    Without RULE: all rules, a line each.
    """
    from sglang_fleet.lint.explained import explanation  # noqa: PLC0415  # --help need not wait for the rules
    from sglang_fleet.lint.register import EVERY, by_id, near  # noqa: PLC0415  # as above

    if rule is None:
        every = [explanation(one) for one in EVERY]
        if as_json:
            write_json([asdict(one) for one in every])
        else:
            click.echo("\n".join(_listed(every)))
        return
    found = by_id(rule)
    if found is None:
        meant = near(rule)
        hint = f"Did you mean {' or '.join(meant)}?" if meant else "`sglang-fleet explain` lists all of them."
        raise Failed(f"There is no rule {rule}. {hint}")
    if as_json:
        write_json(asdict(explanation(found)))
    else:
        click.echo("\n".join(_explained(explanation(found))))


def _listed(every: list[Explanation]) -> Iterator[str]:
    from sglang_fleet.lint.register import SUBJECTS  # noqa: PLC0415  # --help need not wait for the rules

    between = ""
    for number, subject in SUBJECTS.items():
        rules = [one for one in every if one.id[3] == number]
        if rules:
            yield f"{between}{subject}"
            between = "\n"
        for one in rules:
            head = f"  {one.id}  {one.severity:7}  "
            yield from textwrap.wrap(
                one.title, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False
            )


def _explained(one: Explanation) -> Iterator[str]:
    yield from _wrapped(f"{one.id}: {one.title}")
    yield from ("", f"  {'severity':9}{one.severity}")
    yield from _wrapped(one.looks_at, indent=f"  {'looks at':9}", then=" " * 11)
    for heading, paragraphs in (("Why", one.why), ("Evidence", one.evidence), ("Fix", one.fix)):
        yield from ("", heading)
        for number, paragraph in enumerate(paragraphs):
            yield from [""] * bool(number)
            yield from _wrapped(paragraph, indent="  ")
    yield from ("", "Waive")
    if one.waiver:
        yield "  At the end of the line that the finding names, or on a line of its own above:"
        yield f"    {one.waiver}"
    else:
        yield from _wrapped("It cannot be waived.", indent="  ")


def _wrapped(text: str, *, indent: str = "", then: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if then is None else then,
        break_long_words=False,
        break_on_hyphens=False,
    )
