"""The command line of the tool; see the package."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from sglang_fleet.catalog.store import DATA
from tools.catalogue import file
from tools.catalogue.problems import NotUnderstoodError
from tools.catalogue.registrations import rows
from tools.catalogue.static_values import Sources

# Releases have a wheel for each Python and machine; this one everywhere, so that everybody gets the same hash.
_WHEEL = ("--implementation=cp", "--python-version=3.11", "--platform=manylinux_2_34_x86_64")


def main() -> None:
    """Read the releases named on the command line, or all those of the file, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m tools.catalogue", description="Make the flag catalogue.")
    parser.add_argument("versions", nargs="*", help="releases to add or read again; all of the file when not given")
    parser.add_argument("--wheels", type=Path, help="a folder of wheels: taken from there, or else kept there")
    options = parser.parse_args()
    releases = file.read()
    for version in options.versions or list(releases):
        releases[version] = _release(version, wheels=options.wheels)
        print(f"{version}: {len(releases[version][1])} arguments")
    DATA.write_text(file.text(releases))
    print(f"{DATA.relative_to(Path(__file__).parents[2])}: {len(releases)} releases, {DATA.stat().st_size} bytes")


def _release(version: str, *, wheels: Path | None) -> tuple[str, file.Entries]:
    if wheels is not None:
        return _read(_wheel(version, wheels), version)
    with tempfile.TemporaryDirectory() as folder:
        return _read(_wheel(version, Path(folder)), version)


def _wheel(version: str, folder: Path) -> Path:
    """The release's wheel in a folder, downloaded with pip when it is not there."""
    pattern = f"sglang-{version}-*.whl"
    if not any(folder.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *_WHEEL]
        if subprocess.run([*command, "--dest", str(folder), f"sglang=={version}"], check=False).returncode:
            raise SystemExit(f"SGLang {version}: pip has no wheel of it")
    return next(folder.glob(pattern))


def _read(wheel: Path, version: str) -> tuple[str, file.Entries]:
    with zipfile.ZipFile(wheel) as archive:
        try:
            found = rows(Sources(archive))
        except NotUnderstoodError as why:
            raise SystemExit(f"SGLang {version} is not understood: {why}") from None
    return hashlib.sha256(wheel.read_bytes()).hexdigest(), [row.as_json() for row in found]


if __name__ == "__main__":
    main()
