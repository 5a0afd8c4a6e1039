"""Writing a wheel by hand, so that the same files give the same bytes on every machine.

Members are stored uncompressed (compressors differ between zlib builds), sorted, with one fixed time.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_EPOCH = (2026, 1, 1, 0, 0, 0)
_METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: {version}
Summary: {summary}
Requires-Python: >=3.9
"""
_WHEEL = """\
Wheel-Version: 1.0
Generator: sglang-fleet-lab
Root-Is-Purelib: true
Tag: py3-none-any
"""


def write(destination: Path, *, name: str, version: str, summary: str, files: Mapping[str, bytes]) -> Path:
    """Write `NAME-VERSION-py3-none-any.whl` into a folder, made when it is missing, and say where it is.

    Args:
        destination: the folder.
        name: the distribution; with '-' or '_' between its words.
        version: its version.
        summary: one line for people.
        files: what it installs: path in site-packages → content.
    """
    destination.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    members = {
        **files,
        f"{info}/METADATA": _METADATA.format(name=name, version=version, summary=summary).encode(),
        f"{info}/WHEEL": _WHEEL.encode(),
    }
    members[f"{info}/RECORD"] = _record(members, f"{info}/RECORD")
    wheel = destination / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for member in sorted(members):
            archive.writestr(_entry(member), members[member])
    return wheel


def _record(files: Mapping[str, bytes], itself: str) -> bytes:
    """The wheel's own list of its members, each with its hash and size."""
    lines = []
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{itself},,\n"]).encode()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=_EPOCH)
    entry.create_system = 3  # Unix, whatever machine builds it
    entry.external_attr = 0o100644 << 16
    return entry
