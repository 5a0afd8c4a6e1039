"""What can be typed next, for the way in which this run was started: by `sglang-fleet`, or by pyinfra itself."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from roles.options import FORWARD, Options
from sglang_fleet.masking import mask

_YES = ("-y", "--yes")
_VALUED = ("--limit", "--data")


def to_go_on(options: Options) -> str:
    """The command that goes on after a pause."""
    _, words = _called_with()
    if not options.typed:
        return _line("pyinfra", *_without_options(sys.argv[1:]), "--data", "resume=true")
    if options.saved:  # a plan says itself which hosts it is for
        words = _without(words, "--limit")
    own, rest = _split(_without_options(words))
    return _line("sglang-fleet", "apply", options.typed, *own, "--resume", *(["--", *rest] if rest else []))


def to_take_back(options: Options, hosts: Sequence[str]) -> str:
    """The command that takes the release back from these hosts alone."""
    limits = [word for host in hosts for word in ("--limit", host)]
    inventory, words = _called_with()
    if not options.typed:
        others = [word for word in _without(_without_options(sys.argv[1:]), "--limit") if word not in _YES]
        script = next((word for word in others if Path(word).name == "deploy.py"), "")
        others = [str(Path(word).with_name("rollback.py")) if word == script else word for word in others]
        return _line("pyinfra", *others, *limits)
    if not options.saved:
        inventory = options.typed
    elif Path(inventory).is_file():  # it need not be in the folder in which this was typed
        inventory = str(Path(inventory).absolute())
    _, rest = _split(words)
    return _line("sglang-fleet", "rollback", inventory, *limits, *(["--", *rest] if rest else []))


def _called_with() -> tuple[str, list[str]]:
    """The inventory, and the words behind the deploy file, as roles/run.py puts them."""
    return (sys.argv[1], sys.argv[3:]) if len(sys.argv) > 1 else ("", [])


def _without_options(words: Sequence[str]) -> list[str]:
    """The words less what this run was asked for beside its settings."""
    return _without(words, "--data", *(f"{name}=" for name in FORWARD))


def _without(words: Sequence[str], option: str, *values: str) -> list[str]:
    """The words less an option, whatever its value, or where that begins with one of these."""
    kept: list[str] = []
    left = iter(words)
    for word in left:
        pair = [word, next(left, "")] if word == option else [word]
        value = pair[1] if len(pair) > 1 else word.removeprefix(f"{option}=") if word.startswith(f"{option}=") else None
        if value is None or (values and not value.startswith(values)):
            kept += pair
    return kept


def _split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """What `sglang-fleet` takes itself, and what it hands on to pyinfra, behind `--`."""
    own: list[str] = []
    left = list(words)
    while left and (left[0] in (*_YES, "-v") or left[0] in _VALUED):
        count = 2 if left[0] in _VALUED else 1
        own, left = own + left[:count], left[count:]
    return own, left


def _line(*words: str) -> str:
    return shlex.join(mask(word) for word in words)
