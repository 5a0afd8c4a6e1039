"""A quadlet, the unit of a podman container, as the `podman run` that it stands for.

Source: podman-systemd.unit(5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import Word
from sglang_fleet.unit_reading import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_fleet.unit_reading import Setting

SECTION = "Container"
_LISTS = {"Environment": "--env"}  # several words on a line
_SINGLE = {
    "EnvironmentFile": "--env-file",
    "Volume": "--volume",
    "PublishPort": "--publish",
    "AddDevice": "--device",
    "Device": "--device",
    "Ulimit": "--ulimit",
    "ShmSize": "--shm-size",
    "Network": "--network",
    "WorkingDir": "--workdir",
    "Entrypoint": "--entrypoint",
}


def podman_run(settings: Sequence[Setting]) -> list[Word]:
    """The command line of a quadlet's settings; empty when it runs no command of its own.

    Raises:
        OpenQuoteError: a quote is never closed.
    """
    found: list[Word] = []
    image: list[Word] = []
    command: list[Word] = []
    for setting in settings:
        if setting.key in _LISTS:
            for text, at in words(setting.value):
                line = setting.line_at(at)
                found += [Word(_LISTS[setting.key], line), Word(text, line)]
        elif setting.key in _SINGLE:
            found += [Word(f"{_SINGLE[setting.key]}={setting.value}", setting.line)]
        elif setting.key == "Image":
            image = [Word(setting.value, setting.line)]
        elif setting.key in ("Exec", "PodmanArgs"):
            split = [Word(text, setting.line_at(at)) for text, at in words(setting.value)]
            command = split if setting.key == "Exec" else command
            found += split if setting.key == "PodmanArgs" else []
    if not image:
        return []
    return [Word("podman", image[0].line), Word("run", image[0].line), *found, *image, *command]
