"""An inventory as pyinfra reads it, without a run and without a connection."""

import logging
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from gevent import monkey
from pyinfra import logger
from pyinfra.api import Config, Inventory, State
from pyinfra.api.exceptions import PyinfraError
from pyinfra.context import ctx_config, ctx_inventory, ctx_state

from sglang_fleet.inventory_files import not_there
from sglang_fleet.patterns import OPTIONS, given, nobody
from sglang_fleet.problems import Problem, place


class InventoryUnusable(Exception):  # noqa: N818  # what is wrong is the operator's inventory, not this program
    """The inventory is not there, has an error, or names no host; the message says where and why.

    Attributes:
        problem: the same, with its place apart.
    """

    def __init__(self, said: str, *, problem: Problem | None = None) -> None:
        """Keep both; what has no place is said alone."""
        super().__init__(said)
        self.problem = problem or Problem(None, None, "", said)


@dataclass(frozen=True, slots=True)
class Hosts:
    """What an inventory holds.

    Attributes:
        hosts: the groups of each host, in the inventory's order.
        groups: every group with its hosts, in the inventory's order; also one without hosts.
        overrides: pyinfra's `--data`, parsed as pyinfra parses it.
        data: what the inventory itself says of each host, beside its name.
        ordered: whether that order is the same in every run.
        notes: what pyinfra warned of while it read.
    """

    hosts: Mapping[str, Sequence[str]]
    groups: Mapping[str, Sequence[str]]
    overrides: Mapping[str, object]
    data: Mapping[str, Mapping[str, object]]
    ordered: bool = True
    notes: tuple[str, ...] = ()


def read_inventory(inventory: str, *, folder: Path, data: Sequence[str] = ()) -> Hosts:
    """The hosts of an inventory, as `pyinfra INVENTORY` finds them in the deployment folder.

    An inventory file is a Python program: it is executed, as pyinfra would execute it.

    Args:
        inventory: a file, found from the current folder; or `host1,host2`, `@connector`, an attribute of a module.
        folder: the deployment folder.
        data: overrides, each `KEY=VALUE`.

    Raises:
        InventoryUnusable: the inventory is not there, has an error, or names no host.
    """
    files, values = _pyinfras_own()
    is_file = Path(inventory).exists()
    if not is_file and (missing := not_there(inventory)):
        raise InventoryUnusable(missing)
    overrides = {key: values.parse_cli_arg(value) for key, _, value in (text.partition("=") for text in data)}
    name = os.path.relpath(inventory, folder) if is_file else inventory
    values.PYTHON_CODES.pop(name, None)  # perhaps of a file with this name in another folder
    with _warnings() as notes, _as_in_a_run(folder):
        try:
            found = files.make_inventory(name, override_data=overrides, cwd=str(folder))
        except (Exception, SystemExit) as error:
            found_wrong = _fault(error, inventory=name, folder=folder)
            raise InventoryUnusable(_said(found_wrong, folder), problem=found_wrong) from error
    if not len(found):
        raise InventoryUnusable(notes[-1] if notes else f"{inventory} names no host")
    return Hosts(
        hosts={host.name: host.groups for host in found},
        groups=groups_in_order(found),
        overrides=overrides,
        data={host.name: found.get_host_data(host.name) for host in found},
        ordered=is_file or keeps_its_order([inventory]),
        notes=tuple(notes),
    )


def groups_in_order(inventory: Inventory) -> dict[str, list[str]]:
    """Every group's hosts, each once, in the inventory's own order; see `keeps_its_order`."""
    place = {host.name: index for index, host in enumerate(inventory)}
    return {
        group: sorted({host.name for host in hosts}, key=place.__getitem__) for group, hosts in inventory.groups.items()
    }


def matching_nobody(inventory: Inventory, words: Sequence[str]) -> str:
    """What to say of `--limit` and `--exclude` that match no host; empty where each matches one.

    Args:
        inventory: as pyinfra has loaded it.
        words: those of pyinfra's command line.
    """
    hosts = [host.name for host in inventory]
    said = [nobody(option, given(words, option), hosts=hosts, groups=inventory.groups) for option in OPTIONS]
    return "; ".join(filter(None, said))


def keeps_its_order(words: Iterable[str]) -> bool:
    """Whether an inventory has the same order in every run.

    pyinfra keeps the order of a file, of a list and of what a connector gives. The hosts of a function it collects in a
    set, and nothing that it keeps tells their order afterwards.

    Args:
        words: those of pyinfra's command line, once the inventory is loaded: so the function's module is, too.
    """
    return not any(_is_function(word) for word in words)


def _is_function(word: str) -> bool:
    """Whether a word is `module.function` or `module:function`."""
    module, _, name = word.replace(":", ".").rpartition(".")
    return callable(getattr(sys.modules.get(module), name, None)) and not Path(word).exists()


def _pyinfras_own() -> tuple[ModuleType, ModuleType]:
    """Those of pyinfra's modules that read inventories and `--data`.

    Its command line replaces half of the standard library for its greenlets as soon as it is imported. Only
    connections need that, so it is kept from it: a process that merely reads stays as it was.
    """
    replace_all = monkey.patch_all
    monkey.patch_all = lambda: None
    try:
        from pyinfra_cli import inventory, util  # noqa: PLC0415  # see above
    finally:
        monkey.patch_all = replace_all
    return inventory, util


@contextmanager
def _as_in_a_run(folder: Path) -> Iterator[None]:
    """What an inventory finds around it in a run; what it prints is kept out of our results."""
    contexts = {ctx_state: State(), ctx_config: Config(), ctx_inventory: None}
    before = {context: context.get() for context in contexts}
    path, writes = list(sys.path), sys.dont_write_bytecode
    for context, value in contexts.items():
        context.set(value)
    sys.path.append(str(folder))
    sys.dont_write_bytecode = True
    try:
        with chdir(folder), redirect_stdout(sys.stderr):
            yield
    finally:
        sys.path[:], sys.dont_write_bytecode = path, writes
        for context, value in before.items():
            context.set(value)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect what pyinfra warns of, which it would print in its own style."""
    notes: list[str] = []
    collector = logging.Handler(logging.WARNING)
    collector.emit = lambda record: notes.append(record.getMessage())  # type: ignore[method-assign]  # as meant
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(collector)
    try:
        yield notes
    finally:
        logger.removeHandler(collector)
        logger.propagate = propagates


def where_and_why(error: BaseException, *, inventory: str, folder: Path) -> str:
    """What an operator needs of an exception: the line of their own file that led to it, and what it says."""
    return _said(_fault(error, inventory=inventory, folder=folder), folder)


def _said(problem: Problem, folder: Path) -> str:
    return f"{place(problem, folder=folder)}: {problem.message}" if problem.file else problem.message


def _fault(error: BaseException, *, inventory: str, folder: Path) -> Problem:
    cause = getattr(error, "exception", error)  # pyinfra wraps what its users' files raise
    if isinstance(cause, SyntaxError):
        return Problem(folder / (cause.filename or inventory), cause.lineno, "", cause.msg)
    own = [
        frame
        for frame in traceback.extract_tb(cause.__traceback__)
        if frame.filename == inventory or _is_inside(frame.filename, folder)
    ]
    said = str(cause) or "it ends itself"
    if not isinstance(cause, (PyinfraError, SystemExit)):
        said = f"{type(cause).__name__}: {said}"
    if own:
        return Problem(folder / own[-1].filename, own[-1].lineno, "", said)
    if not isinstance(cause, (PyinfraError, OSError)):
        said = f"pyinfra cannot use it ({said}); a host is a name, or a name with settings: (name, {{...}})"
    if (folder / inventory).exists():
        return Problem(folder / inventory, None, "", said)
    return Problem(None, None, "", f"{inventory}: {said}")


def _is_inside(file: str, folder: Path) -> bool:
    path = folder / file
    return path.is_file() and path.is_relative_to(folder) and "site-packages" not in path.parts
