"""What every part of the probe stands on: JSON without the json module, one value at a time, files."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = Any  # whatever JSON can hold, or {"unknown": why}

CHUNK = 2**15  # bytes read at once; a larger buffer costs more to allocate than the calls it saves
SMALL = 2**20  # bytes: no file or answer that is read whole here has a reason to be larger
LARGE = 100 * 2**20  # bytes: a safetensors header may be this long by its specification
TIMEOUT = 10.0  # seconds for a child process


class Unreadable(Exception):  # noqa: N818 - a finding, not an error of the program
    """A value cannot be known; the text says why, for the operator."""


# -- JSON, without the json module ---------------------------------------------------------------------------


def refuse_constant(name: str) -> None:
    """NaN and infinities are no JSON."""
    raise Unreadable(f"{name} in JSON")


class Scanning:
    """What the interpreter's own scanner, the one behind `json.loads`, asks its caller for."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(refuse_constant)


def scanner() -> Callable[[str, int], tuple[Json, int]]:
    """The part of the json module that is written in C; the module itself where that has changed."""
    try:
        from _json import make_scanner  # noqa: PLC0415 - private, so it may be missing

        return make_scanner(Scanning())  # type: ignore[arg-type] # typeshed names the wrong type
    except (ImportError, AttributeError, TypeError):
        from json import JSONDecoder  # noqa: PLC0415 - slow to import

        decoder: Any = JSONDecoder(parse_constant=refuse_constant)  # `scan_once` is in no type stub
        return decoder.scan_once  # type: ignore[no-any-return] # as above


def from_json(text: str, what: str) -> Json:
    """Read one JSON value; Unreadable names `what` when it is none."""
    text = text.strip(" \t\r\n")
    try:
        value, end = scanner()(text, 0)
    except (StopIteration, ValueError, RecursionError, SystemError):
        # SystemError: in Python 3.10 and 3.11 the scanner sets no error while json.decoder is not imported.
        raise Unreadable(f"{what}: not JSON") from None
    if end != len(text):
        raise Unreadable(f"{what}: not one JSON value")
    return value


def quoted(text: str) -> str:
    """An ASCII JSON string; what is no text (a file name in another encoding) becomes question marks."""
    try:
        from _json import encode_basestring_ascii as encode  # noqa: PLC0415 - private, so it may be missing
    except ImportError:
        from json.encoder import encode_basestring_ascii as encode  # noqa: PLC0415 - slow to import
    return str(encode(text.encode("utf-8", "replace").decode()))


def to_json(value: Json) -> str:
    """Write a value as ASCII JSON; bytes become base64."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        from binascii import b2a_base64  # noqa: PLC0415 - a shared library on some hosts: loaded if needed

        return f'"{b2a_base64(value, newline=False).decode()}"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{to_json(str(key))}:{to_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(to_json, value)) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


# -- Files: absent, unreadable and damaged are three things --------------------------------------------------


def leaf(look: Callable[..., Json], *arguments: Json) -> Json:
    """The value, or {"unknown": why} for whatever went wrong: one unreadable value hides no other."""
    try:
        return look(*arguments)
    except Unreadable as error:
        return {"unknown": str(error)}
    except OSError as error:
        return {"unknown": f"{error.filename or look.__name__}: {error.strerror or error}"}
    except Exception as error:  # noqa: BLE001 - one odd value must not cost the whole observation
        return {"unknown": f"{look.__name__}: {type(error).__name__}: {error}"[:300]}


def read(path: str, limit: int = SMALL) -> bytes:
    """A whole regular file; OSError when that fails, Unreadable when it is something else or too large."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # non-blocking: a FIFO must not hang the probe
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) and os.path.realpath(path) != os.devnull:
            raise Unreadable(f"{path}: not a regular file")
        content = bytearray()
        while chunk := os.read(descriptor, CHUNK):
            content += chunk
            if len(content) > limit:
                raise Unreadable(f"{path}: larger than {limit} bytes")
        return bytes(content)
    finally:
        os.close(descriptor)


def read_object(path: str) -> dict[str, Any]:
    """A file that must hold a JSON object."""
    content = from_json(read(path).decode("utf-8", "replace"), path)
    if not isinstance(content, dict):
        raise Unreadable(f"{path}: not a JSON object")
    return content


def names(folder: str) -> list[str]:
    """What a folder holds, sorted, without hidden names (half-built things); nothing if it is not there."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return []


def is_there(path: str) -> bool:
    """Whether a path exists; unlike os.path.exists, "permission denied" is an error and not a no."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def number(text: str, what: str) -> int:
    """A count; nvidia-smi puts "[N/A]" and the like where it has none."""
    if not (text.isascii() and text.isdigit()):
        raise Unreadable(f"{what}: {text[:100]!r} is not a number")
    return int(text)
