"""What is slow to make, made once: folders kept under the hash of their recipe."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from .paths import cache_folder, state_folder


def folder_of(kind: str, recipe: str) -> Path:
    """Where the thing of this kind made by this recipe is, or will be."""
    return cache_folder() / kind / hashlib.sha256(recipe.encode()).hexdigest()[:16]


def ensure(kind: str, recipe: str, make: Callable[[Path], Path]) -> Path:
    """The folder for a recipe, made when it is not there; the caller holds the cache's lock.

    Args:
        kind: the folder of the cache it belongs to.
        recipe: all that the result depends on.
        make: makes the result as a folder inside the empty one it is given, and returns it.
    """
    folder = folder_of(kind, recipe)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    try:
        make(building).replace(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    _prune(folder)
    return folder


def _prune(newest: Path) -> None:
    """Remove what older recipes made, unless a lab is there: its hosts may lie on one of them."""
    if any((state_folder() / "labs").glob("*")):
        return
    for folder in newest.parent.iterdir():
        if folder != newest:
            shutil.rmtree(folder, ignore_errors=True)
