"""Make the flag catalogue of one SGLang release from the release's own wheel.

    python -m tools.catalogue 0.5.23

downloads the wheel with pip, reads every command line argument out of its syntax trees (nothing of it is
imported: no torch, no GPU) and writes src/sglang_fleet/catalog/data/VERSION.json, one argument a line.

Where declarations stand: in `sglang/srt/arg_groups/fields/*.py` (annotations `name: A[TYPE, Arg(...)]`,
which `add_cli_args_from_dataclass` of `arg_groups/arg_utils.py` turns into argparse, by rules repeated here) and in
the `parser.add_argument(...)` calls of `sglang/srt/server_args.py: ServerArgs.add_cli_args`.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tools.static_values import Module, Sources, UnresolvedError

DATA = Path(__file__).parent.parent / "src" / "sglang_fleet" / "catalog" / "data"
FIELDS = "sglang/srt/arg_groups/fields/"
SERVER_ARGS = "sglang/srt/server_args.py"

# What a type or a parsing function of the source means for a value in YAML.
_KINDS = {
    "int": "int",
    "float": "float",
    "str": "str",
    "human_readable_int": "size",
    "json_list_type": "json",
    "json.loads": "json",
    "parse_cuda_graph_config_arg": "json",
    "nullable_str": "str",
    "parse_cuda_graph_backend_arg": "str",
}
_DEPRECATED = re.compile(r"^\W*deprecated\b[\s:.,]*(?P<advice>[^).]*)", re.IGNORECASE)


@dataclass
class Row:
    """One argument on its way into the catalogue."""

    flags: list[str]
    destination: str
    kind: str = "str"
    nargs: str | None = None
    choices: list[object] | None = None
    default: object = None
    required: bool = False
    deprecated: str | None = None

    @property
    def flag(self) -> str:
        """The argument's own long name: the first one declared."""
        return self.flags[0]

    def as_json(self) -> dict[str, object]:
        """Only what differs from the commonest argument: an optional text without choices."""
        pairs = {
            "kind": (self.kind, "str"),
            "aliases": (self.flags[1:], []),
            "destination": (self.destination, self.flag.removeprefix("--").replace("-", "_")),
            "nargs": (self.nargs, None),
            "choices": (self.choices, None),
            "default": (self.default, None),
            "required": (self.required, False),
            "deprecated": (self.deprecated, None),
        }
        return {"flag": self.flag} | {key: value for key, (value, usual) in pairs.items() if value != usual}


def _plain(value: object) -> object:
    """A JSON value; sets in a fixed order, so that the file is the same every time it is made."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return list(value) if isinstance(value, tuple) else value


class Reader:
    """Turns declarations into rows."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources

    def rows(self) -> list[Row]:
        """Every argument of the release, sorted by its flag."""
        found = [
            row
            for path in self.sources.paths(FIELDS)
            for statement in self.sources.module(path).tree.body
            if isinstance(statement, ast.ClassDef)
            for row in self._declared(statement, self.sources.module(path))
        ]
        found += self._registered(self.sources.module(SERVER_ARGS))
        return sorted(found, key=lambda row: row.flag)

    def _value(self, node: ast.expr | None, module: Module, scope: dict[str, ast.expr]) -> object:
        """The value of an expression; None when the source computes it at run time."""
        if node is None:
            return None
        try:
            return _plain(self.sources.value(node, module, scope))
        except UnresolvedError as why:
            print(f"not spelled out in the source: {why}", file=sys.stderr)
            return None

    def _choices(self, node: ast.expr | None, module: Module, scope: dict[str, ast.expr]) -> list[object] | None:
        value = self._value(node, module, scope)
        return value if isinstance(value, list) else None

    # Declarations: annotated fields

    def _declared(self, statement: ast.ClassDef, module: Module) -> list[Row]:
        rows = []
        for item in statement.body:
            match item:
                case ast.AnnAssign(
                    target=ast.Name(id=name),
                    annotation=ast.Subscript(
                        value=ast.Name(id="A" | "Annotated"), slice=ast.Tuple(elts=[kind, *metadata])
                    ),
                    value=default,
                ):
                    row = self._field(name, kind, metadata, default, module)
                    rows += [row] if row else []
        return rows

    def _field(
        self, name: str, kind: ast.expr, metadata: list[ast.expr], default: ast.expr | None, module: Module
    ) -> Row | None:
        settings: dict[str, ast.expr] = {}
        for entry in metadata:
            if isinstance(entry, ast.Call) and ast.unparse(entry.func) == "Arg":
                settings = {word.arg: word.value for word in entry.keywords if word.arg}
                break
            if isinstance(entry, ast.Constant) and isinstance(entry.value, str):
                settings = {"help": entry}
                break
        else:
            return None
        if self._value(settings.get("no_cli"), module, {}):
            return None
        flag = self._value(settings.get("cli_name"), module, {}) or "--" + name.replace("_", "-")
        aliases = self._choices(settings.get("aliases"), module, {}) or []
        row = Row([str(flag), *map(str, aliases)], name)
        row.default = self._value(default, module, {})
        row.deprecated = self._advice(settings, module)
        self._type(row, _without_optional(kind), settings, module)
        row.required = default is None and row.kind not in ("flag", "switch") and row.nargs is None
        return row

    def _type(self, row: Row, kind: ast.expr, settings: dict[str, ast.expr], module: Module) -> None:
        """The rules of arg_utils.add_cli_args_from_dataclass, in its order."""
        parser = settings.get("type_parser")
        nargs = self._value(settings.get("nargs"), module, {})
        row.nargs = nargs if isinstance(nargs, str) else None
        row.choices = self._choices(settings.get("choices"), module, {})
        if "action" in settings:
            self._action(row, settings)
            return
        container, inner = _subscript(kind)
        if parser is not None:
            row.kind = _KINDS[ast.unparse(parser)]
        elif container == "Literal":
            self._literal(row, inner, module)
        elif container in ("List", "list"):
            row.kind, row.nargs = _KINDS.get(ast.unparse(inner), "str"), row.nargs or "+"
        else:
            row.kind = "flag" if ast.unparse(kind) == "bool" else _KINDS.get(ast.unparse(kind), "str")

    def _literal(self, row: Row, inner: ast.expr, module: Module) -> None:
        nodes = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        values = [self._value(node, module, {}) for node in nodes]
        row.kind = "int" if isinstance(values[0], int) else "str"
        # A literal None in such a list cannot be written on a command line.
        row.choices = row.choices or [value for value in values if value is not None]

    # Registrations: calls of add_argument on the parser

    def _registered(self, module: Module) -> list[Row]:
        function = next(
            node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef) and node.name == "add_cli_args"
        )
        scope: dict[str, ast.expr] = {}
        rows = []
        for statement in function.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    scope[name] = value
                case ast.Expr(value=ast.Call(func=ast.Attribute(attr="add_argument")) as call):
                    rows.append(self._registration(call, module, scope))
        return rows

    def _registration(self, call: ast.Call, module: Module, scope: dict[str, ast.expr]) -> Row:
        settings = {word.arg: word.value for word in call.keywords if word.arg}
        flags = [str(self._value(argument, module, scope)) for argument in call.args]
        destination = self._value(settings.get("dest"), module, scope)
        row = Row(flags, str(destination or flags[0].removeprefix("--").replace("-", "_")))
        row.default = self._registered_default(settings.get("default"), module, scope)
        row.choices = self._choices(settings.get("choices"), module, scope)
        row.deprecated = self._advice(settings, module)
        nargs = self._value(settings.get("nargs"), module, scope)
        row.nargs = nargs if isinstance(nargs, str) else None
        if "type" in settings:
            row.kind = _KINDS.get(ast.unparse(settings["type"]), "str")
        if "action" in settings:
            self._action(row, settings)
        row.required = bool(self._value(settings.get("required"), module, scope))
        return row

    def _registered_default(self, node: ast.expr | None, module: Module, scope: dict[str, ast.expr]) -> object:
        match node:
            case ast.Call(func=ast.Name(id="_declared_default"), args=[ast.Constant(value=name)]):
                return self._field_default(str(name))
        return self._value(node, module, scope)

    def _field_default(self, name: str) -> object:
        for path in self.sources.paths(FIELDS):
            for node in ast.walk(self.sources.module(path).tree):
                if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
                    return self._value(node.value, self.sources.module(path), {})
        return None

    # What both ways share

    def _action(self, row: Row, settings: dict[str, ast.expr]) -> None:
        action = settings["action"]
        name = ast.unparse(action).rpartition(".")[2].strip("'")
        match name:
            case "BooleanOptionalAction":
                row.kind = "switch"
            case "store_true" | "DeprecatedStoreTrueAction":
                row.kind, row.default = "flag", False if row.default is None else row.default
            case "DeprecatedStoreConstAction" if "nargs" not in settings:
                row.kind = "flag"
            case "DeprecatedStoreConstAction" | "DeprecatedAliasStoreAction":
                row.kind = "str"
            case "LoRAPathAction":
                row.kind, row.nargs = "str", "*"
            case _:
                raise SystemExit(f"{row.flag}: unknown action {name}: teach tools/catalogue.py what it does")

    def _advice(self, settings: dict[str, ast.expr], module: Module) -> str | None:
        """What the source says to use instead, when it calls the argument deprecated."""
        replacement = settings.get("new_flag")
        if replacement is not None:
            return f"use {self._value(replacement, module, {})}"
        text = settings.get("help")
        found = _DEPRECATED.match(str(text.value)) if isinstance(text, ast.Constant) else None
        return " ".join(found["advice"].split()) if found else None


def _subscript(kind: ast.expr) -> tuple[str, ast.expr]:
    """`("List", int)` for `List[int]`; `("", X)` for a plain `X`."""
    return (ast.unparse(kind.value), kind.slice) if isinstance(kind, ast.Subscript) else ("", kind)


def _without_optional(kind: ast.expr) -> ast.expr:
    """`X` for `Optional[X]` and `X | None`."""
    match kind:
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return inner
        case ast.BinOp(left=inner, op=ast.BitOr(), right=ast.Constant(value=None)):
            return inner
    return kind


def download(version: str, folder: Path) -> Path:
    """Fetch a release's wheel with pip from whatever index this machine uses."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    subprocess.run([*command, "--dest", str(folder), f"sglang=={version}"], check=True)
    return next(folder.glob("*.whl"))


def catalogue_text(wheel: Path, version: str) -> str:
    """The catalogue file of a wheel: JSON, one argument a line."""
    with zipfile.ZipFile(wheel) as archive:
        rows = Reader(Sources(archive)).rows()
    head = {"schema": 1, "version": version, "wheel": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    arguments = ",\n".join(json.dumps(row.as_json(), separators=(", ", ": ")) for row in rows)
    return "{" + "\n".join(lines) + '\n"arguments": [\n' + arguments + "\n]}\n"


def main() -> None:
    """Write the catalogue of the release named on the command line."""
    parser = argparse.ArgumentParser(description="Make the flag catalogue of one SGLang release.")
    parser.add_argument("version", help="the release, such as 0.5.23")
    parser.add_argument("--wheel", type=Path, help="read this wheel instead of downloading one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = options.wheel or download(options.version, Path(folder))
        text = catalogue_text(wheel, options.version)
    target = DATA / f"{options.version}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(text)
    print(f"{target.relative_to(Path.cwd())}: {len(json.loads(text)['arguments'])} arguments")


if __name__ == "__main__":
    main()
