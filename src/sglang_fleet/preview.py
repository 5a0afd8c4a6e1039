"""A service's release as its files would be written, shown without reading a secret."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sglang_fleet.addresses import cuda_home, venv_id
from sglang_fleet.masking import MASK, mask
from sglang_fleet.release import PLACEHOLDER, make_release
from sglang_fleet.render import Places, RenderedFile, command_words, render

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sglang_fleet.spec import Deployment, Service

UNKNOWN_RELEASE = "<release>"
"""What stands for the id of a release that depends on secrets; `difference.py` shows ids so too."""

_VALUE = "@secret@"  # what no file's own escaping changes
_VENV, _CUDA = "@venv@", "@cuda@"  # likewise, where a lock file is missing
_SHOWN = {PLACEHOLDER: UNKNOWN_RELEASE, _VENV: "<venv>", _CUDA: "<cuda>"}


@dataclass(frozen=True, slots=True)
class Preview:
    """What one service comes to on a host.

    Attributes:
        release: the release's id; None where it is not known, and the texts say `UNKNOWN_RELEASE` instead.
        why_unknown: why the id is not known; empty when it is.
        argv: the server's command line, word by word.
        files: every file of the release; secrets, and what looks like one, are masked.
    """

    service: str
    unit_name: str
    release: str | None
    why_unknown: str
    argv: tuple[str, ...]
    files: tuple[RenderedFile, ...]


def preview(service: Service, *, deployment: Deployment, folder: Path) -> Preview:
    """Render one service of a host's spec.

    Args:
        service: one of the deployment's.
        deployment: the host's spec.
        folder: the deployment folder, for the lock files.
    """
    version = deployment.sglang.version
    places = Places(
        service=service.name,
        release=PLACEHOLDER,
        venv_id=_locked(venv_id, folder, deployment) or _VENV,
        cuda_home=_locked(cuda_home, folder, deployment) or _CUDA,
    )
    why_unknown = "its id depends on secrets, none of which is read" if service.secrets else ""
    if places.venv_id == _VENV or places.cuda_home == _CUDA:
        why_unknown = "its id depends on a lock file that is not there"
    if why_unknown:
        values = dict.fromkeys(service.secrets, _VALUE)
        files = render(service=service, version=version, places=places, secrets=values)
    else:
        release = make_release(
            service=service,
            version=version,
            venv_id=places.venv_id,
            cuda_home=places.cuda_home,
            secrets={},
            fingerprints={},
        )
        files, places = release.files, release.places
    words = command_words(service, version=version, venv=places.venv, release_folder=places.release_folder)
    return Preview(
        service=service.name,
        unit_name=service.unit_name,
        release=None if why_unknown else places.release,
        why_unknown=why_unknown,
        argv=tuple(_shown(word) for option in words for word in option),
        files=tuple(replace(file, text=_shown(file.text)) for file in files),
    )


def _locked(place: Callable[[Path, Deployment], str], folder: Path, deployment: Deployment) -> str | None:
    """What follows from a lock file; None where it cannot be read."""
    try:
        return place(folder, deployment)
    except (OSError, UnicodeDecodeError):
        return None


def _shown(text: str) -> str:
    for mark, name in _SHOWN.items():
        text = text.replace(mark, name)
    return text.replace(_VALUE, MASK) if _VALUE in text else mask(text)
