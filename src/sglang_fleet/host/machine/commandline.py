"""What a hand-written unit's ExecStart says about where its server listens. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

DEFAULT_HOST = "127.0.0.1"  # sglang's own defaults: --host, --port in its server_args
DEFAULT_PORT = 30000

_KEY_OPTIONS = ("--api-key", "--admin-api-key")
_PREFIXES = "@-:+!"  # systemd.service(5), "special executable prefixes"


@dataclass(frozen=True)
class Serves:
    """Where a server listens, and with which key.

    Attributes:
        port: None when it stands elsewhere: in a variable, in a file, or in a script that the unit starts.
        keys: all the values to mask.
        node_rank: which node of a server on several hosts it is; above 0 it has SGLang's small server, which knows
            /health alone.
    """

    host: str
    port: int | None
    api_key: str
    keys: tuple[str, ...]
    node_rank: int = 0


def exec_start(*texts: str) -> list[str]:
    """Return the words of the ExecStart that is in force in a unit and its drop-ins, [] when there is none.

    Quoting is close to a shell's. What stands in `bash -c "..."` is split too, so that its options are seen.
    """
    value = ""
    for text in texts:
        section = ""
        for line in _joined(text):
            if line.startswith("["):
                section = line
            elif section == "[Service]" and line.replace(" ", "").startswith("ExecStart="):
                value = line.partition("=")[2].strip()  # the last one counts; an empty one clears the list
    words = _split(value.lstrip(_PREFIXES))
    inner = [part for word in words if " --" in word for part in _split(word)]
    return inner or words


def serves(words: list[str]) -> Serves:
    """Return where the server with this command line listens."""
    host = _value(words, "--host") or DEFAULT_HOST
    port = _value(words, "--port")
    keys = tuple(value for option in _KEY_OPTIONS if (value := _value(words, option)))
    return Serves(
        host=host,
        port=int(port) if port.isdigit() else None if _hides_port(words, port) else DEFAULT_PORT,
        api_key=_value(words, "--api-key"),
        keys=keys,
        node_rank=int(rank) if (rank := _value(words, "--node-rank")).isdigit() else 0,
    )


def _hides_port(words: list[str], port: str) -> bool:
    return bool(port) or "--config" in words or not any("sglang" in word for word in words)


def _joined(text: str) -> list[str]:
    """Return a unit's lines, continued ones joined, comments left out (also between continued lines)."""
    lines: list[str] = []
    open_line = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(("#", ";")) or (not line and not open_line):
            continue
        continued = line.endswith("\\")
        line = line[:-1].rstrip() if continued else line
        if open_line:
            lines[-1] = f"{lines[-1]} {line}"
        else:
            lines.append(line)
        open_line = continued
    return lines


def _split(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:  # an open quote: systemd would not start it either
        return value.split()


def _value(words: list[str], option: str) -> str:
    """Return an option's value, `--port 1` or `--port=1`; the last one counts, as in argparse."""
    found = ""
    for index, word in enumerate(words):
        if word == option and index + 1 < len(words):
            found = words[index + 1]
        elif word.startswith(f"{option}="):
            found = word.partition("=")[2]
    return found
