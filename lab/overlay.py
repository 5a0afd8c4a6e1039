"""A host's disk: a writable layer of its own over folders that all hosts share."""

import shutil
from pathlib import Path

from . import tree
from .tools import call


def root_of(folder: Path) -> Path:
    """Where the disk in `folder` is mounted."""
    return folder / "root"


def lower_of(folder: Path) -> list[Path]:
    """What lies below the disk, topmost first."""
    return [Path(line) for line in (folder / "lower").read_text().splitlines()]


def mount(folder: Path, *, lower: list[Path], files: dict[str, str]) -> None:
    """Mount the disk in `folder`; a new one holds `files` (path on the host to text) and nothing else."""
    upper, work, root = folder / "upper", folder / "work", root_of(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if root.is_mount():
        return
    if upper.exists():
        lower = lower_of(folder)
    else:
        fresh = folder / "upper.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o755)
        for path, text in files.items():
            tree.write(path, text, over=lower[-1], into=fresh)
        (folder / "lower").write_text("\n".join(map(str, lower)))
        fresh.rename(upper)
    # Left by a mount that the machine's own restart ended; overlayfs would take it for one still in use.
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    root.mkdir(exist_ok=True)
    layers = ":".join(map(str, lower))
    # volatile: nothing here needs to survive a power cut, and package managers sync after every file.
    options = f"lowerdir={layers},upperdir={upper},workdir={work},volatile"
    call(["mount", "-t", "overlay", "overlay", "-o", options, root])


def unmount(folder: Path) -> None:
    """Unmount the disk and throw it away."""
    while root_of(folder).is_mount():
        call(["umount", root_of(folder)])
    shutil.rmtree(folder, ignore_errors=True)
