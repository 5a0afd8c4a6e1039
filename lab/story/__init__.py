"""The beginning of design.md's story: a host on which somebody set up a server by hand."""

import zipfile
from pathlib import Path

from lab import wheels
from lab.errors import LabError

UNIT = "sglang-k26.service"
VENV = "root/venv_sglang211"
SGLANG = "sglang==0.5.23"


def unit_text() -> str:
    """The hand-written unit: with the leftover --disable-cuda-graph, without --pp-async-batch-depth."""
    return Path(__file__).with_name(UNIT).read_text()


def is_on(root: Path) -> bool:
    """Whether a host has, or had, the hand-written server."""
    return (root / VENV).is_dir()


def write(root: Path) -> None:
    """Write the old venv and the old unit below a host's root folder, enabled: it starts at the next boot."""
    wheel = wheels.wheel_of(SGLANG, wheels.index_folder())
    if wheel is None:
        raise LabError(f"the lab's index has no wheel of {SGLANG}: `python -m lab up` builds it")
    version = next((root / "usr" / "lib").glob("python3.*")).name
    venv = root / VENV
    packages = venv / "lib" / version / "site-packages"
    packages.mkdir(parents=True, exist_ok=True)
    (venv / "bin").mkdir(exist_ok=True)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    interpreter = venv / "bin" / "python"
    if not interpreter.is_symlink():
        interpreter.symlink_to("/usr/bin/python3")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    system = root / "etc" / "systemd" / "system"
    (system / UNIT).write_text(unit_text())
    wanted = system / "multi-user.target.wants" / UNIT
    wanted.parent.mkdir(exist_ok=True)
    if not wanted.is_symlink():
        wanted.symlink_to(f"/etc/systemd/system/{UNIT}")
