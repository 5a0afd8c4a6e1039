"""The command line: argparse over the release's catalogue, and `--config`.

Copied from 0.5.23: `srt/server_args.py: prepare_server_args` (the parser's name is `sglang serve`) and
`srt/utils/server_args_config_parser.py` (the file's words go before those of the command line, which
therefore win; `--config` counts as a word of its own only, `--config=FILE` is quietly ignored).
"""

from __future__ import annotations

import argparse
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from . import config

_SUFFIXES = {
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kMGT])|(\d+)([KMGT]i)")


def size(value: str) -> int:
    """A whole number that may carry an SI or IEC suffix."""
    match = _SIZE.fullmatch(value.strip())
    if match:
        number, suffix = (match[1], match[2]) if match[2] else (match[3], match[4])
        return int(Decimal(number) * _SUFFIXES[suffix])
    return int(value)


Entry = dict[str, Any]
TYPES = {"str": str, "int": int, "float": float, "size": size, "json": json.loads}


def catalogue() -> list[Entry]:
    """Every argument of the release, as the wheel carries it."""
    data = json.loads(Path(__file__).with_name("catalogue.json").read_bytes())
    return cast("list[Entry]", data["arguments"])


def parser(entries: list[Entry]) -> argparse.ArgumentParser:
    """The parser of the release, from its catalogue."""
    result = argparse.ArgumentParser(prog="sglang serve")
    for entry in entries:
        flags = [entry["flag"], *entry.get("aliases", [])]
        settings: dict[str, Any] = {"dest": entry.get("destination") or entry["flag"][2:].replace("-", "_")}
        settings["default"] = entry.get("default")
        kind = entry.get("kind", "str")
        if kind == "flag":
            settings.update(action="store_const", const=entry.get("const", True))
        elif kind == "switch":
            settings["action"] = argparse.BooleanOptionalAction
        else:
            settings.update(type=TYPES[kind], choices=entry.get("choices"), nargs=entry.get("nargs"))
            settings["required"] = entry.get("required", False)
            if entry.get("nargs") == "?":
                settings["const"] = entry.get("const")
        result.add_argument(*flags, **settings)
    return result


def parse(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """The effective arguments by destination, and the command line with the config file's words in it.

    Exits with status 2 and argparse's message when a word is not understood.
    """
    entries = catalogue()
    if "--config" in words:
        words = _merged(words, entries)
    values = vars(parser(entries).parse_args(words))
    values.pop("config", None)
    return values, words


def _merged(words: list[str], entries: list[Entry]) -> list[str]:
    place = words.index("--config")
    if words.count("--config") > 1:
        raise ValueError("Multiple config files specified! Only one allowed.")
    if place == len(words) - 1:
        raise ValueError("No config file specified after --config flag!")
    data = config.read(words[place + 1])
    return config_words(data, entries) + words[:place] + words[place + 2 :]


def config_words(data: dict[str, Any], entries: list[Entry]) -> list[str]:
    """The words a config file stands for."""
    kinds = {flag[2:].replace("-", "_"): entry.get("kind") for entry in entries for flag in _flags(entry)}
    words = []
    for key, value in data.items():
        kind = kinds.get(key.replace("-", "_"))
        if kind == "switch":
            raise ValueError(f"Unsupported config option '{key}' with action 'BooleanOptionalAction'")
        if value is True and kind == "flag":
            words.append(f"--{key}")
        elif isinstance(value, bool):
            words += [] if kind == "flag" else [f"--{key}", str(value).lower()]
        elif isinstance(value, list):
            words += [f"--{key}", *map(str, value)] if value else []
        else:
            words += [f"--{key}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return words


def _flags(entry: Entry) -> list[str]:
    return [entry["flag"], *entry.get("aliases", [])]
