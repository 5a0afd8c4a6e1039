"""Commands whose `--json` is JSON also when something keeps them from a result, so that a pipe never gets nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sglang_fleet.cli.common import Failed, asks_for_json, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sglang_fleet.problems import Problem


class AnsweringCommand(click.Command):
    """A command that tells what it ends by in its result, too.

    It tells it where it tells what is wrong with the settings, so that who reads those reads this. The text on standard
    error and the exit status are the same as without `--json`.
    """

    def __init__(
        self, *args: Any, unanswered: Callable[[Mapping[str, Any], Sequence[Problem]], object], **kwargs: Any
    ) -> None:
        """Keep how a result looks that holds nothing but problems.

        Args:
            args: click's own.
            unanswered: makes it of the parameters, as far as they are known, and the problems.
            kwargs: click's own.
        """
        super().__init__(*args, **kwargs)
        self._unanswered = unanswered

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line."""
        as_json = asks_for_json(*args, **kwargs)
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            if as_json:
                self._tell({}, error)
            raise

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401  # click's own
        """Do it."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            if ctx.params["as_json"]:
                self._tell(ctx.params, error)
            raise

    def _tell(self, params: Mapping[str, Any], error: click.ClickException) -> None:
        write_json(self._unanswered(params, problems_of(error)))


def problems_of(error: click.ClickException) -> list[Problem]:
    """What a command ends by: with its place where that is known."""
    from sglang_fleet.problems import Problem  # noqa: PLC0415  # nothing is wrong, nothing to read

    known = error.problems if isinstance(error, Failed) else ()
    return list(known) or [Problem(None, None, "", " ".join(error.format_message().split()))]
