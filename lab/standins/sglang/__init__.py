"""The stand-in `sglang` wheel: SGLang's command line, HTTP answers and life cycle, without a model.

`package/` is what the wheel installs as `sglang`. The same sources give the same bytes on every machine:
`locks/lab-sglang-0.5.23.txt` names their hash.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from lab import wheel_file

__all__ = ["DEFAULT_VERSION", "build", "lock_text"]

DEFAULT_VERSION = "0.5.23"
_PACKAGE = Path(__file__).parent / "package"
_SUMMARY = "Stand-in for SGLang on lab hosts of sglang-fleet. Not SGLang."


def build(destination: Path, *, version: str = DEFAULT_VERSION, marker: str = "") -> Path:
    """Write `sglang-VERSION-py3-none-any.whl` into a folder and say where it is.

    Args:
        destination: the folder; made when it is missing.
        version: what the wheel says it is; it parses the flags of that release, or of the nearest one known.
        marker: a word `/server_info` answers as `standin_marker`: for two wheels of one version that can be
            told apart, with different hashes.
    """
    files = {f"sglang/{path.name}": path.read_bytes() for path in _PACKAGE.glob("*.py")}
    files["sglang/_version.py"] = _version_module(version=version, marker=marker)
    files["sglang/catalogue.json"] = _catalogue(version)
    files["datasets/__init__.py"] = b'"""A stand-in: bench_serving imports it."""\n'
    return wheel_file.write(destination, name="sglang", version=version, summary=_SUMMARY, files=files)


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
