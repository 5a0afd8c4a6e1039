"""The host program: `sglang_fleet.host` packed as one zipapp, addressed by its content."""

import hashlib
import io
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = "sglang_fleet_host"
_HOST_FOLDER = Path(__file__).parent / "host"
_MAIN = f"import sys\nfrom {PACKAGE}.__main__ import main\nsys.exit(main())\n"
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
        _add(archive, "__main__.py", _MAIN)
        for source in sorted(_HOST_FOLDER.rglob("*.py")):
            name = source.relative_to(_HOST_FOLDER).as_posix()
            _add(archive, f"{PACKAGE}/{name}", source.read_text(encoding="utf-8"))
    content = buffer.getvalue()
    return Program(digest=hashlib.sha256(content).hexdigest()[:16], content=content)


@cache
def probe_source() -> str:
    """The probe's source, which is sent whole, so that a host needs nothing beforehand."""
    return _source("probe.py")


@cache
def probe_name() -> str:
    """The name under which hosts keep this very probe, compiled."""
    return f"probe-{hashlib.sha256(probe_source().encode()).hexdigest()[:16]}"


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
