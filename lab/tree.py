"""Writing a folder that is to lie over a root file system."""

import os
import shutil
from pathlib import Path


def write(
    path: str,
    content: str | bytes,
    *,
    over: Path,
    into: Path,
    mode: int = 0o644,
    owner: int = 0,
) -> None:
    """Write `path` (absolute, as the host sees it) below `into`.

    Folders on the way take mode and owner of the same folder in `over`: in an overlay the upper folder's
    attributes win, and a /root that anybody may read would not be a /root. New folders belong to `owner`.
    """
    target = into / path.lstrip("/")
    _folders(target.parent, over=over, into=into, owner=owner)
    target.write_bytes(content.encode() if isinstance(content, str) else content)
    target.chmod(mode)
    os.chown(target, owner, -1)


def link(path: str, target: str, *, over: Path, into: Path) -> None:
    """Make the symbolic link `path` below `into`, naming `target`."""
    place = into / path.lstrip("/")
    _folders(place.parent, over=over, into=into, owner=0)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def _folders(folder: Path, *, over: Path, into: Path, owner: int) -> None:
    if folder.exists():
        return
    _folders(folder.parent, over=over, into=into, owner=owner)
    folder.mkdir()
    below = over / folder.relative_to(into)
    if below.is_symlink():
        raise ValueError(f"{folder.relative_to(into)} is a symbolic link on the hosts: write to where it points")
    if below.is_dir():
        shutil.copystat(below, folder)
        status = below.stat()
        os.chown(folder, status.st_uid, status.st_gid)
    else:
        folder.chmod(0o755)
        os.chown(folder, owner, -1)
