"""A host's disk: a writable layer of its own over folders that all hosts share.

The layer is a folder of the machine's disk, or a file system of its own in one file: where the machine's file system
discards blocks as it frees them, to remove 100,000 files takes minutes, and that one file a moment.
"""

import shutil
from pathlib import Path

from . import tree
from .tools import call

IMAGE = "disk.img"


def root_of(folder: Path) -> Path:
    """Where the disk in `folder` is mounted."""
    return folder / "root"


def lower_of(folder: Path) -> list[Path]:
    """What lies below the disk, topmost first."""
    return [Path(line) for line in (folder / "lower").read_text().splitlines()]


def is_image(folder: Path) -> bool:
    """Whether the layer of the disk in `folder` is a file system of its own."""
    return (folder / IMAGE).exists()


def mount(folder: Path, *, lower: list[Path], files: dict[str, str], gigabytes: int = 0) -> None:
    """Mount the disk in `folder`; a new one holds `files` (path on the host to text) and nothing else.

    Args:
        folder: where it is.
        lower: what lies below it, topmost first.
        files: what a new one holds.
        gigabytes: the size of a new one, for a file system of its own; it takes only what is written.
    """
    root = root_of(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if root.is_mount():
        return
    if gigabytes and not (folder / "upper").exists() and not is_image(folder):
        _make_image(folder / IMAGE, gigabytes)
    layer = _layer(folder)
    upper, work = layer / "upper", layer / "work"
    if upper.exists():
        lower = lower_of(folder)
    else:
        fresh = layer / "upper.new"
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
    for place in (root_of(folder), folder / "layer"):
        while place.is_mount():
            call(["umount", place])
    shutil.rmtree(folder, ignore_errors=True)


def _make_image(image: Path, gigabytes: int) -> None:
    fresh = image.with_suffix(".new")
    with fresh.open("wb") as handle:
        handle.truncate(gigabytes << 30)
    call(["mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "nodiscard,lazy_itable_init=1", fresh])
    fresh.rename(image)


def _layer(folder: Path) -> Path:
    """The folder that holds the layer: mounted, where it is an image."""
    if not is_image(folder):
        return folder
    place = folder / "layer"
    place.mkdir(exist_ok=True)
    if not place.is_mount():
        # As `volatile` below: nothing needs to survive a power cut.
        call(["mount", "-t", "ext4", "-o", "loop,nobarrier,noatime", folder / IMAGE, place])
    return place
