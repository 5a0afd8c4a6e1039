"""The stand-in `sglang` wheel: SGLang's command line, HTTP answers and life cycle, without a model.

`package/` is what the wheel installs as `sglang`. `build` zips it by hand, so that the same sources give the
same bytes on every machine: members are stored uncompressed (compressors differ between zlib builds), sorted,
with one fixed time. `locks/lab-sglang-0.5.23.txt` names the hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from pathlib import Path

__all__ = ["DEFAULT_VERSION", "build", "lock_text"]

DEFAULT_VERSION = "0.5.23"
_PACKAGE = Path(__file__).parent / "package"
_EPOCH = (2026, 1, 1, 0, 0, 0)
_METADATA = """\
Metadata-Version: 2.1
Name: sglang
Version: {version}
Summary: Stand-in for SGLang on lab hosts of sglang-fleet. Not SGLang.
Requires-Python: >=3.9
"""
_WHEEL = """\
Wheel-Version: 1.0
Generator: sglang-fleet-lab
Root-Is-Purelib: true
Tag: py3-none-any
"""


def build(destination: Path, *, version: str = DEFAULT_VERSION, marker: str = "") -> Path:
    """Write `sglang-VERSION-py3-none-any.whl` into a folder and say where it is.

    Args:
        destination: the folder; made when it is missing.
        version: what the wheel says it is; it parses the flags of that release, or of the nearest one known.
        marker: a word `/server_info` answers as `standin_marker`: for two wheels of one version that can be
            told apart, with different hashes.
    """
    destination.mkdir(parents=True, exist_ok=True)
    wheel = destination / f"sglang-{version}-py3-none-any.whl"
    info = f"sglang-{version}.dist-info"
    files = {f"sglang/{path.name}": path.read_bytes() for path in _PACKAGE.glob("*.py")}
    files["sglang/_version.py"] = _version_module(version=version, marker=marker)
    files["sglang/catalogue.json"] = _catalogue(version)
    files[f"{info}/METADATA"] = _METADATA.format(version=version).encode()
    files[f"{info}/WHEEL"] = _WHEEL.encode()
    files[f"{info}/RECORD"] = _record(files, f"{info}/RECORD")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            archive.writestr(_member(name), files[name])
    return wheel


def lock_text(wheel: Path, version: str = DEFAULT_VERSION) -> str:
    """The requirements file that installs exactly this wheel."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    head = "# The stand-in wheel of the lab: python -m lab.standins.sglang --lock"
    return f"{head}\nsglang=={version} --hash=sha256:{digest}\n"


def _version_module(*, version: str, marker: str) -> bytes:
    lines = ('"""Written by the build."""', "", f"__version__ = {version!r}", f"MARKER = {marker!r}", "")
    return "\n".join(lines).encode()


def _catalogue(version: str) -> bytes:
    # `python -m lab down` has to work where nothing is installed any more.
    from sglang_fleet.catalog import nearest  # noqa: PLC0415 - see above
    from sglang_fleet.catalog.store import entries  # noqa: PLC0415 - see above

    lines = ",\n".join(json.dumps(entry) for entry in entries(nearest(version).version))
    return f'{{"arguments": [\n{lines}\n]}}\n'.encode()


def _record(files: dict[str, bytes], itself: str) -> bytes:
    """The wheel's own list of its members, each with its hash and size."""
    lines = []
    for name, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{itself},,\n"]).encode()


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, date_time=_EPOCH)
    member.create_system = 3  # Unix, whatever machine builds it
    member.external_attr = 0o100644 << 16
    return member
