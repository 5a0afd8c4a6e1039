"""Join modules of one package into a single source that does the same, for an interpreter that has nothing but it.

Modules that are to be joined share one set of names. What would mean something else in one source is refused: a name
that two of them define, one that hides a built-in, a relative import that renames or that comes too early.
"""

import ast
import builtins
import symtable
from collections.abc import Mapping

_FUTURE = "from __future__ import annotations"
_TYPE_CHECKING = "from typing import TYPE_CHECKING"


class JoiningError(ValueError):
    """The modules cannot be joined; the text says which, and why."""


def joined(modules: Mapping[str, str]) -> str:
    """One source of modules' texts (name → text), in their order: the imports of all, then what each one defines.

    Left out are docstrings of modules, relative imports and `if TYPE_CHECKING:` blocks: annotations are not evaluated.

    Raises:
        JoiningError: the joined source would not mean what the modules mean.
    """
    owners = dict.fromkeys(dir(builtins), "Python")
    imports: set[str] = set()
    parts: list[str] = []
    done: set[str] = set()
    for module, text in modules.items():
        taken, dropped = _imports(module, text, done)
        for name, statement in taken.items():
            _own(owners, name, statement)
        lines = enumerate(text.split("\n"), 1)
        part = "\n".join(line for number, line in lines if number not in dropped).strip("\n")
        for symbol in symtable.symtable(part, module, "exec").get_symbols():
            if symbol.is_assigned() or symbol.is_imported():
                _own(owners, symbol.get_name(), module)
        imports.update(taken.values())
        parts.append(f"# -- {module}\n\n{part}")
        done.add(module)
    head = "\n".join((_FUTURE, "", *sorted(imports)))
    return "\n\n\n".join((head, *parts)) + "\n"


def _imports(module: str, text: str, done: set[str]) -> tuple[dict[str, str], set[int]]:
    """The absolute imports at a module's top level (name → statement), and the lines it does without once joined."""
    taken: dict[str, str] = {}
    dropped: set[int] = set()
    tree = ast.parse(text)
    for place, statement in enumerate(tree.body):
        if isinstance(statement, ast.ImportFrom) and statement.level:
            _check_relative(module, statement, done)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            if ast.unparse(statement) not in (_FUTURE, _TYPE_CHECKING):
                taken |= _single(statement)
        elif not _is_for_type_checkers(statement) and not (place == 0 and _is_text(statement)):
            if any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(statement)):
                raise JoiningError(f"{module}: a relative import below the top level")
            continue
        dropped |= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return taken, dropped


def _single(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Name → the statement that imports it alone."""
    start = f"from {statement.module} import" if isinstance(statement, ast.ImportFrom) else "import"
    return {alias.asname or alias.name.partition(".")[0]: f"{start} {ast.unparse(alias)}" for alias in statement.names}


def _check_relative(module: str, statement: ast.ImportFrom, done: set[str]) -> None:
    if statement.level > 1 or statement.module not in done:
        raise JoiningError(f"{module}: takes from {ast.unparse(statement).split()[1]}, which does not come before it")
    if any(alias.asname or alias.name == "*" for alias in statement.names):
        raise JoiningError(f"{module}: {ast.unparse(statement)}: names must stay what they are")


def _own(owners: dict[str, str], name: str, owner: str) -> None:
    if owners.setdefault(name, owner) != owner:
        raise JoiningError(f"{name} is defined twice: by {owners[name]} and by {owner}")


def _is_for_type_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
