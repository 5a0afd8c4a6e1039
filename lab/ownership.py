"""Which checkout a lab belongs to: the names of network namespaces and cgroups are the whole machine's."""

from contextlib import suppress
from pathlib import Path

from . import network, processes
from .errors import LabError
from .paths import RUNTIME, state_folder
from .tools import call


def _file(lab: str) -> Path:
    return RUNTIME / lab / "owner"


def check(lab: str) -> None:
    """Refuse to touch a lab that another checkout is using.

    Raises:
        LabError: another checkout's processes run in it.
    """
    owner = Path(_file(lab).read_text()) if _file(lab).exists() else None
    if owner not in {None, state_folder()} and processes.pids(lab):
        raise LabError(f"lab {lab!r} is in use by {owner}: take it down there, or use another --name")


def claim(lab: str) -> None:
    """Make the lab this checkout's, after clearing away what a dead lab of another one left behind."""
    check(lab)
    if _file(lab).exists() and Path(_file(lab).read_text()) != state_folder():
        owner = Path(_file(lab).read_text())
        for line in reversed(Path("/proc/self/mounts").read_text().splitlines()):
            mountpoint = line.split()[1].encode().decode("unicode_escape")
            if mountpoint.startswith(f"{owner}/labs/{lab}/"):
                call(["umount", mountpoint])
        processes.end(lab)
        network.delete(lab)
    _file(lab).parent.mkdir(parents=True, exist_ok=True)
    _file(lab).write_text(str(state_folder()))


def release(lab: str) -> None:
    """Forget who the lab belongs to: it is gone."""
    for path in _file(lab).parent.glob("*"):
        path.unlink()
    if _file(lab).parent.exists():
        _file(lab).parent.rmdir()
    with suppress(OSError):  # another lab's are in it
        RUNTIME.rmdir()
