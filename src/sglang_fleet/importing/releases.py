"""Which release of SGLang a source runs, and what that needs beside itself: a start for `cuda` and `sglang`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglang_fleet.catalog import catalogue, history, nearest, order, versions
from sglang_fleet.importing.engines import is_sglang
from sglang_fleet.importing.groups import argument_of, fitting_version, groups
from sglang_fleet.masking import mask
from sglang_fleet.starting import LOCKED_RELEASE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_fleet.importing.basis import Launch, Notes

# The last release whose packages are built for CUDA 12; what follows needs CUDA 13 and driver 580.
# Source: SGLang's installation guide, of 0.5.23.
_LAST_OF_CUDA_12 = "0.5.19"
_VERSION = r"0\.[0-9]+\.[0-9]+(?:\.?(?:rc|post|dev)[0-9]+)?"
_TAG = re.compile(rf"v?({_VERSION})(?:[-_+].*)?")
_REQUIREMENT = re.compile(rf"sglang(?:\[[A-Za-z0-9_,. -]*\])?\s*==\s*v?({_VERSION})")


@dataclass(frozen=True, slots=True)
class Pin:
    """A place of the source that says a release.

    Attributes:
        release: the release.
        written: what says it: an image, a requirement.
        line: its line.
    """

    release: str
    written: str
    line: int


@dataclass(frozen=True, slots=True)
class Frame:
    """The settings around the services.

    Attributes:
        cuda: the toolkit.
        lock: where the lock file of the release is expected.
    """

    cuda: dict[str, Any]
    lock: str


def frame(version: str) -> Frame:
    """What stands around the services of a release."""
    if order(version) <= order(_LAST_OF_CUDA_12):
        # CUDA 12.9 came with driver 575.
        return Frame({"version": "12.9", "source": "apt", "minimum_driver": 575}, f"locks/sglang-{version}-cu129.txt")
    return Frame({"version": "13.0", "source": "apt", "minimum_driver": 580}, f"locks/sglang-{version}-cu130.txt")


def lock_command(version: str) -> str:
    """How to make the lock file of a release; empty for the one whose lock file `init` writes."""
    if version == LOCKED_RELEASE:
        return ""
    lock = frame(version).lock
    source = f"{lock.removesuffix('.txt')}.in"
    return (
        f"echo sglang=={version} > {source} && uv pip compile --generate-hashes --no-emit-index-url "
        "--prerelease=if-necessary-or-explicit --python-version 3.11 --python-platform x86_64-manylinux_2_35 "
        f"{source} -o {lock}"
    )


def release_in(image: str) -> str:
    """The release that an image's tag says; empty when it says none, or is no image of SGLang."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    found = _TAG.fullmatch(tag) if is_sglang(image) else None
    return found[1] if found else ""


def required(text: str) -> str:
    """The release that a requirement such as `sglang[all]==0.5.9` names; empty for any other word."""
    found = _REQUIREMENT.match(text)
    return found[1] if found else ""


def chosen(launches: Sequence[Launch], installed: Sequence[Pin], wanted: str | None, notes: Notes) -> str:
    """The release to read a source as, and say why.

    Args:
        launches: the servers.
        installed: what commands of the source install.
        wanted: what was asked for, which counts more than all else.
        notes: takes the reasons.
    """
    images = [Pin(release_in(image), image, line) for image, line in (launch.around.image for launch in launches)]
    images = [image for image in dict.fromkeys(images) if is_sglang(image.written)]
    if wanted is not None:
        for image in images:
            notes.add(image.line, f"{_image(image)}; read as SGLang {wanted}")
        return wanted
    pins = [pin for pin in images if pin.release] or list(dict.fromkeys(installed))
    for image in images:
        if image not in pins and pins:
            notes.add(image.line, f"{_image(image)}; it names no release")
    if not pins:
        return _fitting(launches, images, notes)
    release = max((pin.release for pin in pins), key=order)
    for pin in pins:
        _say_pin(pin, release, notes)
    first = next(pin for pin in pins if pin.release == release)
    known = nearest(release)
    for launch in launches:
        for group in groups(launch.words)[0]:
            if argument_of(group.flag, known) is None and history(group.flag):
                what = f"{group.flag} is not of SGLang {known.version}"
                notes.add(group.line, f"{what}, which {mask(first.written)} is: look which of the two is right")
    return release


def _image(pin: Pin) -> str:
    return f"image {mask(pin.written)}: the product installs SGLang on the host itself"


def _say_pin(pin: Pin, release: str, notes: Notes) -> None:
    said = f"{pin.written} is installed by the product" if required(pin.written) else _image(pin)
    if pin.release != release:
        notes.add(pin.line, f"{said}; a host runs one release: read as {release}, not {pin.release}")
    elif release in versions():
        notes.add(pin.line, f"{said}; read as SGLang {release}")
    else:
        other = f"its flags are not known here: read as those of {nearest(release).version}"
        notes.add(pin.line, f"{said}; SGLang {release} is kept, and {other}")


def _fitting(launches: Sequence[Launch], images: Sequence[Pin], notes: Notes) -> str:
    """The newest release with all flags, where nothing says which it is."""
    release = fitting_version(launches)
    for image in images:
        read_as = f"read as SGLang {release}, the newest with all its flags; --sglang-version says another"
        notes.add(image.line, f"{_image(image)}; it names no release: {read_as}")
    if release == versions()[-1]:
        return release
    newest = catalogue(versions()[-1])
    for launch in launches:
        for group in groups(launch.words)[0]:
            there = history(group.flag)
            if there and newest.find(group.flag) is None and there[-1] != versions()[-1]:
                sentence = (newest.check(group.flag, None) or "").replace("`", "")
                notes.add(group.line, f"{sentence}; read as SGLang {release} for that")
    return release
