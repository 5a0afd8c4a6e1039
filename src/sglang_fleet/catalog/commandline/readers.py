"""How SGLang reads one word: by the argument's kind, or with a function of its own that the catalogue names.

Each raises ValueError where SGLang would not take the word; a `WrongValueError` says why.
"""

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn

from sglang_fleet.catalog import Argument, Kind, order


class WrongValueError(ValueError):
    """The rest of a sentence that begins with the option's name."""


def read_word(argument: Argument, word: str, *, version: str) -> object:
    """The value SGLang's parser makes of a word for this argument, choices aside."""
    if argument.reader == "parse_cuda_graph_config_arg":
        return _cuda_graph_config(word, version)
    return (_READERS[argument.reader] if argument.reader else _KINDS[argument.kind])(word)


# srt/utils/common.py: human_readable_int
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<suffix>[kMGT])|(?P<whole>\d+)(?P<binary>[KMGT])i")


def _size(word: str) -> int:
    match = _SIZE.fullmatch(word.strip())
    if match is None:
        return int(word)
    if match["whole"]:
        return int(match["whole"]) << 10 * ("KMGT".index(match["binary"]) + 1)
    return int(Decimal(match["number"]) * 1000 ** ("kMGT".index(match["suffix"]) + 1))


def _strict_json(word: str) -> object:
    """JSON as the library orjson reads it (`json_list_type`): nothing but what the standard allows."""

    def number(text: str) -> float:
        value = float(text)
        if math.isinf(value):
            raise ValueError("beyond what a float holds")
        return value

    def whole(text: str) -> float:
        value = int(text)
        return value if -(2**63) <= value < 2**64 else number(text)

    def never(_: str) -> NoReturn:
        raise ValueError("no JSON")

    value = json.loads(word, parse_float=number, parse_int=whole, parse_constant=never)
    json.dumps(value, ensure_ascii=False).encode()  # raises for half a character
    return value


def _nullable(word: str) -> str | None:
    return None if word in ("", "None") else word


def _lora_path(word: str) -> object:
    """A path, a name with a path, or a JSON object (`LoRAPathAction`)."""
    word = word.strip()
    if not (word.startswith("{") and word.endswith("}")):
        return word
    value = json.loads(word)
    missing = [key for key in ("lora_name", "lora_path") if key not in value]
    if missing:
        raise WrongValueError(f"needs {' and '.join(missing)} in {word}")
    return value


# srt/model_executor/cuda_graph_config.py, ALLOWED_KEYS_PER_PHASE: since which release, and from which on no more.
_KEYS_OF_BOTH: dict[str, tuple[str, str | None]] = {
    "backend": ("0.5.14", None),
    "max_bs": ("0.5.14", None),
    "bs": ("0.5.14", None),
    "tc_compiler": ("0.5.14", "0.5.22"),
}
_GRAPH_KEYS: dict[str, dict[str, tuple[str, str | None]]] = {
    "decode": _KEYS_OF_BOTH,
    "prefill": _KEYS_OF_BOTH
    | {
        "full_prefill_max_req": ("0.5.15", None),
        "full_prefill_prefix_chunk_tokens": ("0.5.17", None),
        "max_context_size": ("0.5.21", None),
        "max_seq_len": ("0.5.21", None),
    },
}


def _cuda_graph_config(word: str, version: str) -> object:
    value = json.loads(word)
    if not isinstance(value, dict):
        raise WrongValueError(f"expects a mapping of {' and '.join(_GRAPH_KEYS)}")
    for phase, settings in value.items():
        if phase not in _GRAPH_KEYS:
            raise WrongValueError(f"knows {' and '.join(_GRAPH_KEYS)}, not {phase!r}")
        if not isinstance(settings, dict):
            raise WrongValueError(f"expects a mapping for {phase!r}")
        backend = settings.get("backend")
        if backend == "tc_piecewise" and order(version) >= order("0.5.22"):
            raise WrongValueError(f"has the backend {backend!r} for {phase!r}, which SGLang {version} no longer has")
        known = [key for key, (first, end) in _GRAPH_KEYS[phase].items() if _is_between(version, first, end)]
        wrong = [key for key in settings if key not in known]
        if wrong:
            raise WrongValueError(f"knows {', '.join(known)} for {phase!r}, not {', '.join(map(repr, wrong))}")
    return value


def _is_between(version: str, first: str, end: str | None) -> bool:
    return order(version) >= order(first) and (end is None or order(version) < order(end))


_KINDS: dict[Kind, Callable[[str], object]] = {
    "str": str,
    "int": int,
    "float": float,
    "size": _size,
    "json": json.loads,
}
_READERS: dict[str, Callable[[str], object]] = {
    "json_list_type": _strict_json,
    "nullable_str": _nullable,
    "parse_cuda_graph_backend_arg": str,  # what it refuses is no choice either
    "LoRAPathAction": _lora_path,
}
