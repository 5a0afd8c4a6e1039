"""Inventory files by their names alone, before anything reads them."""

from pathlib import Path


def not_there(inventory: str) -> str:
    """What to say where a file was meant that is not there; empty where hosts were meant, or a connector, or a module.

    So nobody asks the network for a host of that name.
    """
    means_file = "/" in inventory or inventory.endswith((".py", ".json"))
    if not means_file or {"@", ",", ":"} & set(inventory):
        return ""
    others = sorted(str(file) for file in Path(inventory).parent.glob("*.py"))
    return f"{inventory} is not there" + (f"; there is {', '.join(others)}" if others else "")
