"""What Python runs first of the packed host program: from here on compiled modules, where boot.py has kept them.

To compile what a command needs costs more than most commands do.
"""

import hashlib
import importlib
import sys


def prefer_compiled(program: str) -> None:
    """Take modules from the compiled copy beside the program; one that is damaged, or of another Python, is no copy."""
    kept = "%s-%x.bin" % (program[: -len(".pyz")], sys.hexversion)
    try:
        with open(kept, "rb") as file:
            digest, content = file.read(64), file.read()
    except OSError:
        return
    if hashlib.sha256(content).hexdigest().encode() == digest:
        sys.path.insert(0, kept)


if __name__ == "__main__":
    prefer_compiled(sys.path[0])
    sys.exit(importlib.import_module("sglang_fleet_host.__main__").main())
