"""The host program: `sglang_fleet.host` packed as one zipapp, addressed by its content."""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = "sglang_fleet_host"
PROBE_MODULES = (  # each one takes only from those before it
    "basis",
    "children",
    "system",
    "processes",
    "nvidia",
    "ports",
    "toolkit",
    "models",
    "units",
    "services",
    "whole",
    "__main__",
)
_HOST_FOLDER = Path(__file__).parent / "host"
_PROBE_FOLDER = _HOST_FOLDER / "probe"
_FIXED_TIME = (2020, 1, 1, 0, 0, 0)  # the same sources give the same bytes on every controller


@dataclass(frozen=True, slots=True)
class Program:
    """A packed host program.

    Attributes:
        digest: the first 16 hexadecimal digits of the SHA-256 of `content`.
        content: the zip file, to be run as `python3 -I FILE COMMAND`.
    """

    digest: str
    content: bytes


@cache
def program() -> Program:
    """Pack the host program; deterministic, so its digest names it on every host."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", _source("entry.py"))
        _add(archive, f"{PACKAGE}/probe.py", probe_source())  # in place of its package: boot.py compiles it
        for source in sorted(_HOST_FOLDER.rglob("*.py")):
            if source.parent != _PROBE_FOLDER:
                name = source.relative_to(_HOST_FOLDER).as_posix()
                _add(archive, f"{PACKAGE}/{name}", source.read_text(encoding="utf-8"))
    content = buffer.getvalue()
    return Program(digest=hashlib.sha256(content).hexdigest()[:16], content=content)


@cache
def probe_source() -> str:
    """The probe's source, joined from its modules and sent whole, so that a host needs nothing beforehand."""
    from sglang_fleet.joining import joined  # noqa: PLC0415 - most runs find the probe kept, and need no source

    return joined({name: _source(f"probe/{name}.py") for name in PROBE_MODULES})


@cache
def probe_name() -> str:
    """The name under which hosts keep this very probe, compiled.

    From what the source is made of, not from the source: to join it costs 14 ms, and most runs can do without.
    """
    joining = Path(__file__).with_name("joining.py").read_bytes()
    parts = [joining, *(_source(f"probe/{name}.py").encode() for name in PROBE_MODULES)]
    return f"probe-{hashlib.sha256(b''.join(parts)).hexdigest()[:16]}"


@cache
def kept_probe_source() -> str:
    """The few lines that run the probe that a host has kept."""
    return _source("kept_probe.py")


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    entry = zipfile.ZipInfo(name, _FIXED_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, text)


@cache
def boot_source() -> str:
    """The few lines that put the program on a host and run it."""
    return _source("boot.py")


def _source(name: str) -> str:
    return (_HOST_FOLDER / name).read_text(encoding="utf-8")
