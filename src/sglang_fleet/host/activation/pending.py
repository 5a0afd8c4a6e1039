"""The note that keeps an activation with barriers alive on its host: through a kill -9, and through a reboot.

It is on the disk before the first change and goes away with the result. While it is there, a small unit of systemd
starts `activate-run` again at every boot of the host; within a boot systemd does that with the transient unit.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ..errors import HostError
from ..files import PRIVATE_FILE, storage, sync_folder, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from .layout import Layout

RESTARTS = {"StartLimitIntervalSec": "600", "StartLimitBurst": "6"}
"""How often at most systemd starts an activation again that does not come to a result."""

RESTART = {"Restart": "on-failure", "RestartSec": "1"}

STOP_TIMEOUT = 20
"""Seconds the transaction gets after SIGTERM to write down where it was."""

_UNIT = """\
# Written by sglang-fleet. A change of the service {service} is under way on this host: after a reboot this finishes it.
# It goes away with the end of the change.
[Unit]
Description=sglang-fleet: finish the change of {service}
RequiresMountsFor="{state}"
{limits}

[Service]
Type=exec
StandardInput=file:{request}
ExecStart="{python}" -I "{program}" activate-run
{restart}
TimeoutStopSec={stop_timeout}

[Install]
WantedBy=multi-user.target
"""


@dataclass(frozen=True)
class Pending:
    """An activation that is not over.

    Attributes:
        previous: where it goes back to, best first; empty for nowhere.
        served: whether what was installed before it ran.
    """

    activation: str
    mode: str
    release: str
    previous: tuple[str, ...]
    served: bool

    def was_running(self, captured: str) -> bool:
        """Return whether a captured unit ran before this activation stopped it."""
        return self.served and captured in self.previous


def read(layout: Layout) -> Pending | None:
    """Return the activation that is not over; None when there is none.

    Raises:
        HostError: the note cannot be read: what ran before is then unknown, never "nothing".
    """
    try:
        fields = json.loads(layout.pending.read_text())
        return Pending(
            activation=str(fields["activation"]),
            mode=str(fields["mode"]),
            release=str(fields["release"]),
            previous=tuple(str(name) for name in fields["previous"]),
            served=bool(fields["served"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no note of an activation"
        raise HostError(
            f"{layout.pending} cannot be read: {why}",
            fix="see which release runs, then move the file aside and run again",
        ) from None


def arm(layout: Layout, pending: Pending, *, units: Path, python: str, program: str) -> None:
    """Write the note and the unit that acts on it after a reboot.

    The unit is enabled by hand: systemd reads it at the next boot, and until then has no need to know it.

    Raises:
        HostError: it cannot be written; nothing acts on what was.
    """
    folder = layout.activation(pending.activation)
    kept = folder / "program.pyz"  # of its own: the programs of all activations are tidied up some day
    with storage(str(folder)):
        if not kept.exists():
            beside = folder / ".program.pyz"
            shutil.copyfile(program, beside)
            with beside.open("rb") as stream:
                os.fsync(stream.fileno())
            beside.replace(kept)
            sync_folder(str(folder))
    text = json.dumps(asdict(pending)) + "\n"
    write_atomically(str(layout.pending), text.encode(), mode=PRIVATE_FILE)
    write_atomically(str(units / layout.resume_unit), _text(layout, folder, python, kept).encode())
    wants = units / "multi-user.target.wants"
    with storage(str(wants)):
        wants.mkdir(exist_ok=True)
        link = wants / layout.resume_unit
        if not os.path.lexists(link):
            link.symlink_to(f"../{layout.resume_unit}")
            sync_folder(str(wants))


def disarm(layout: Layout, *, units: Path) -> None:
    """Take the unit and the note away; what is away already is no matter. Raises HostError."""
    for path in (units / "multi-user.target.wants" / layout.resume_unit, units / layout.resume_unit, layout.pending):
        with storage(str(path.parent)), contextlib.suppress(FileNotFoundError):
            path.unlink()
            sync_folder(str(path.parent))


def _text(layout: Layout, folder: Path, python: str, program: Path) -> str:
    def escaped(path: str) -> str:
        return path.replace("%", "%%")

    return _UNIT.format(
        service=layout.service,
        state=escaped(str(layout.state)),
        limits=_lines(RESTARTS),
        request=escaped(str(folder / "request.json")),
        python=escaped(python),
        program=escaped(str(program)),
        restart=_lines(RESTART),
        stop_timeout=STOP_TIMEOUT,
    )


def _lines(settings: dict[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in settings.items())
