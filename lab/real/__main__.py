"""Fetch and build the wheels of SGLang itself, or renew the locks after what they are made from has changed.

python -m lab.real          prints the folder of the wheels, and nothing else to standard output
python -m lab.real --lock
"""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout

from lab.paths import cache_folder, locked
from lab.real import index


def main() -> None:
    """Fill the index; or write the locks as well."""
    parser = argparse.ArgumentParser(description="Fetch and build the wheels of SGLang itself for lab hosts.")
    parser.add_argument("--lock", action="store_true", help="write locks/lab-real-sglang-*.txt")
    options = parser.parse_args()
    with redirect_stdout(sys.stderr), locked(cache_folder() / "lock"):
        made = [index.ensure()]
        if options.lock:
            for version in index.RELEASES:
                index.lock_of(version).write_text(index.lock_text(version))
            made = [index.lock_of(version) for version in index.RELEASES]
    print(*made, sep="\n")


if __name__ == "__main__":
    main()
