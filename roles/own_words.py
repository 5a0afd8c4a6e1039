"""Our own words where pyinfra's would be of no help.

They are an inventory with an error, a name that matches no host of it, a key that is missing, and a no.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

_CONTINUE = "One of more hosts failed, continue?"  # pyinfra asks this in the middle; everything else, before

_SIGNALLED = 128


@contextmanager
def own_words() -> Iterator[None]:
    """Say what is wrong with an inventory, as `lint` does, or with a key, leave no log file of it; take a no for a no.

    A name that matches no host pyinfra passes over, with a warning; here it ends the run before a host is connected to.

    pyinfra's command line has to be loaded by now.
    """
    from roles.keys import with_usable_keys  # noqa: PLC0415  # pyinfra's command line comes first

    module: Any = sys.modules["pyinfra_cli.cli"]
    ours = {
        "make_inventory": _readable(module.make_inventory),
        "connect_all": with_usable_keys(module.connect_all),
        "_do_confirm": _confirmed,
    }
    theirs = {name: getattr(module, name) for name in ours}
    vars(module).update(ours)
    try:
        yield
    finally:
        vars(module).update(theirs)


def _readable(make_inventory: Callable[..., Any]) -> Callable[..., Any]:
    def made(inventory: str, **how: Any) -> Any:  # noqa: ANN401  # pyinfra's own
        from roles.inventory import matching_nobody, where_and_why  # noqa: PLC0415  # pyinfra's command line comes first

        try:
            found = make_inventory(inventory, **how)
        except (Exception, SystemExit) as error:  # whatever an operator's program raises
            if isinstance(error, SystemExit) and isinstance(error.code, int) and error.code > _SIGNALLED:
                raise  # Ctrl-C, while it was read
            why = where_and_why(error, inventory=inventory, folder=Path.cwd())
        else:
            why = matching_nobody(found, sys.argv[1:])
            if not why:
                return found
        sys.exit(why)  # outside of the error, which pyinfra would write down

    return made


def _confirmed(question: str) -> bool:
    """Whether Enter, or yes, was the answer."""
    click.echo(f"\n    {question}", err=True)
    click.echo("    Press enter to execute, or n to leave everything as it is: ", err=True, nl=False)
    try:
        answer = input().strip().lower()
    except EOFError:
        answer = "n"
        click.echo(err=True)
    if answer in ("", "y", "yes"):
        return True
    done = "Nothing further was begun." if question == _CONTINUE else "Nothing was changed."
    click.echo(f"    Not confirmed. {done}", err=True)
    return False
