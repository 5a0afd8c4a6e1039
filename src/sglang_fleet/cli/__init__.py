"""`sglang-fleet`: what can be known of a deployment without a connection, and what is done to its hosts."""

import gc
import os
import sys
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from typing import NoReturn

import click

from sglang_fleet.cli.common import ERRORS, examples

# Name and module. A command is imported when it is called: `explain` need not wait for what only `lint` reads.
_SECTIONS = {
    "Without a connection": {
        "init": "init",
        "import": "import_",
        "lint": "lint",
        "explain": "explain",
        "sizing": "sizing",
        "render": "render",
    },
    "On hosts": {
        "plan": "plan",
        "apply": "apply",
        "rollback": "rollback",
        "history": "history",
        "bench": "bench",
        "unlock": "unlock",
    },
}
_COMMANDS = {name: module for commands in _SECTIONS.values() for name, module in commands.items()}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click calls it so
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # as above
        if cmd_name not in _COMMANDS:
            return None
        command = import_module(f"{__name__}.{_COMMANDS[cmd_name]}").command
        assert isinstance(command, click.Command)  # noqa: S101  # every module of a command exports one
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0].lower(), _COMMANDS, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(_COMMANDS)}."
            raise click.UsageError(f"There is no command {args[0]}. {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, names in _SECTIONS.items():
            width = formatter.width - max(map(len, names)) - 6  # click's own margins
            commands = {name: self.get_command(ctx, name) for name in names}
            with formatter.section(section):
                formatter.write_dl([(name, one.get_short_help_str(width)) for name, one in commands.items() if one])


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "sglang-fleet init fleet --host gpu-1.example.net",
        "sglang-fleet import /etc/systemd/system/sglang.service",
        "sglang-fleet lint inventory/prod.py",
        "sglang-fleet plan inventory/prod.py",
        "sglang-fleet apply inventory/prod.py",
    ),
)
@click.version_option(package_name="sglang-fleet", message="%(prog)s %(version)s")
def group() -> None:
    """Deploy SGLang to the hosts of an inventory: look at the settings, plan, apply, go back.

    Every command has --help with an example, and --json.
    """


def main() -> None:
    """The program `sglang-fleet`."""
    gc.disable()  # a short process: for a thousand hosts, looking for garbage takes a seventh of its time
    if sys.stdout is None:
        _end("standard output is closed")
    for stream in filter(None, (sys.stdout, sys.stderr)):
        # A terminal that cannot show a character gets its code, not an error.
        stream.reconfigure(errors="backslashreplace")
    try:
        try:
            group(prog_name="sglang-fleet")
        finally:
            sys.stdout.flush()
    except OSError as error:
        # Python would try once more at its end, and say so.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        what = error.filename or "standard output"
        _end(f"{what} cannot be {'used' if error.filename else 'written'}: {(error.strerror or str(error)).lower()}")


def _end(why: str) -> NoReturn:
    if sys.stderr is not None:
        with suppress(OSError):
            click.echo(f"sglang-fleet: {why}", err=True)
    raise SystemExit(ERRORS)
