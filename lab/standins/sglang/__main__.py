"""Build the stand-in wheel, or renew the lab's lock after its sources changed.

python -m lab.standins.sglang FOLDER [--version 0.5.22] [--marker WORD]
python -m lab.standins.sglang --lock
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from lab.standins.sglang import DEFAULT_VERSION, build, lock_text

LOCK = Path(__file__).parents[3] / "locks" / f"lab-sglang-{DEFAULT_VERSION}.txt"


def main() -> None:
    """Build into the folder asked for; or write the lock."""
    parser = argparse.ArgumentParser(description="Build the stand-in sglang wheel.")
    parser.add_argument("folder", type=Path, nargs="?", help="where the wheel goes")
    parser.add_argument("--version", default=DEFAULT_VERSION)
    parser.add_argument("--marker", default="", help="a word to tell two wheels of one version apart")
    parser.add_argument("--lock", action="store_true", help=f"write {LOCK.name}")
    options = parser.parse_args()
    if options.lock:
        with tempfile.TemporaryDirectory() as folder:
            LOCK.write_text(lock_text(build(Path(folder))))
        print(LOCK)
    elif options.folder:
        print(build(options.folder, version=options.version, marker=options.marker))
    else:
        parser.error("say where the wheel goes, or --lock")


if __name__ == "__main__":
    main()
