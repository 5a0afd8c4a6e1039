"""Where the lab keeps things, and how two labs stay out of each other's way.

Two folders: the state folder (`.lab/` in the checkout, or SGLANG_FLEET_LAB), with a cache that all labs
share and a folder for each lab; and a runtime folder for the machine as a whole, because the name of a
network namespace is machine-wide: it says which state folder a lab of that name belongs to.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import LabError

REPOSITORY = Path(__file__).resolve().parent.parent
RUNTIME = Path("/run/sglang-fleet")

# A veth end is called `vb-<lab>-<host>`, and an interface's name has at most 15 characters: 8 for the lab,
# 3 for the host.
LAB_NAME = re.compile(r"[a-z][a-z0-9]{0,7}")


def state_folder() -> Path:
    """The folder that holds every lab of this checkout and their shared cache."""
    return Path(os.environ.get("SGLANG_FLEET_LAB") or REPOSITORY / ".lab").resolve()


def cache_folder() -> Path:
    """What is slow to build and the same for every lab: root file system, wheels, apt repository, keys."""
    return state_folder() / "cache"


def lab_folder(name: str) -> Path:
    """The folder of one lab; it exists from the beginning of `up` to the end of `down`."""
    check_name(name)
    return state_folder() / "labs" / name


def check_name(name: str) -> None:
    """Refuse a name that cannot become an interface name.

    Raises:
        LabError: the name is too long or has other characters than a-z and 0-9.
    """
    if not LAB_NAME.fullmatch(name):
        raise LabError(f"a lab's name is 1 to 8 characters of a-z and 0-9, a letter first; {name!r} is not")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path`; waits for whoever has it. The kernel frees it, also after kill -9."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
