"""Processes: named, but never by their whole command line (keys stand there)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .basis import leaf, read

if TYPE_CHECKING:
    from typing import Any

PYTHON_SWITCHES = "bBdEhiIOPqRsSuvVx"  # of the interpreter, those that take no value


def process(root: str, pid: int) -> dict[str, Any]:
    """Who a process is."""
    return {"pid": pid, "command": leaf(command, root, pid), "unit": leaf(unit_of, root, pid)}


def command(root: str, pid: int) -> str:
    """The kernel's name of a process, for Python with its module or script; or SGLang's own title."""
    name = read(f"{root}/proc/{pid}/comm").decode("utf-8", "replace").strip()
    arguments = read(f"{root}/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")
    title = arguments[0].split(" ")[0]
    if title.startswith("sglang::"):
        name = title
    elif arguments[0].rpartition("/")[2].startswith("python"):
        name += python_program(arguments[1:])
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:200]


def python_program(arguments: list[str]) -> str:
    """` -m module` or ` script.py` from an interpreter's arguments; nothing at the first doubt."""
    while arguments:
        argument = arguments.pop(0)
        if argument == "-m":
            module = arguments[0] if arguments else ""
            return f" -m {module}" if all(map(str.isidentifier, module.split("."))) else ""
        if argument in ("-X", "-W"):
            del arguments[:1]
        elif not argument.startswith("-"):
            return " " + argument.rpartition("/")[2]
        elif not argument[1:] or argument[1:].strip(PYTHON_SWITCHES):
            return ""
    return ""


def unit_of(root: str, pid: int) -> str | None:
    """The systemd unit whose control group a process is in: cgroup v1's systemd hierarchy, else v2's."""
    lines = read(f"{root}/proc/{pid}/cgroup").decode("utf-8", "replace").splitlines()
    groups = {line.split(":", 2)[1]: line.split(":", 2)[-1] for line in lines if line.count(":") > 1}
    for part in reversed(groups.get("name=systemd", groups.get("", "")).split("/")):
        if part.endswith((".service", ".scope")):
            return part
    return None
