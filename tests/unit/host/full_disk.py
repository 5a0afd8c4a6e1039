"""A disk that is full: nothing new can be written on it but what takes the place of room that was kept."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.host import files


def no_space() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    """From here on one file can be created under `state` for each piece of room that made way."""
    create, left = files.create, [len(list(state.rglob("room-*")))]

    def on_a_full_disk(path: str, data: bytes, **more: Any) -> None:
        if state in Path(path).parents:
            if len(list(state.rglob("room-*"))) >= left[0]:
                raise no_space()
            left[0] -= 1
        create(path, data, **more)

    monkeypatch.setattr(files, "create", on_a_full_disk)
