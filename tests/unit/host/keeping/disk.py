"""A host's state folder as deployments leave it, each thing written a minute after the one before."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sglang_fleet.host.keeping import lock
from sglang_fleet.host.keeping.mentions import Mentions, Reader
from sglang_fleet.host.keeping.prune import Asked, prune
from sglang_fleet.host.keeping.removal import Removal
from tests.unit.host.stand_ins import collector

RUN = "run-1"
LATER = 60


class Disk:
    """The state folder, and what units and processes of the host name."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.named = Mentions()
        self._now = 1_700_000_000
        lock.run({"state": str(state), "run": RUN, "who": "test"}, say=collector()[1])

    def write(self, path: Path, content: object) -> Path:
        """Write a file, a minute later; what is no text is JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        self._now += LATER
        os.utime(path, (self._now, self._now))
        return path

    def service(self, service: str) -> Path:
        return self.state / "services" / service

    def release(
        self, release: str, *, service: str = "k26", venv: str = "", cuda: str = "", whole: bool = True
    ) -> Path:
        folder = self.service(service) / "releases" / release
        places = {"venv": f"{self.state}/venvs/{venv}" if venv else "", "cuda_home": ""}
        if cuda:
            places["cuda_home"] = f"{self.state}/cuda/{cuda}/nvidia/cu13"
        self.write(folder / "unit", "[Service]\n")
        if whole:
            self.write(folder / "release.json", {"service": service, "release": release, **places})
        return folder

    def activation(
        self, name: str, release: str, previous: str | None, *, service: str = "k26", over: bool = True, **more: object
    ) -> Path:
        folder = self.service(service) / "activations" / name
        self.write(folder / "request.json", {"service": service, "release": release, "activation": name, **more})
        self.write(folder / "began.json", {"mode": "activate", "release": release, "previous": previous})
        if over:
            self.write(folder / "result.json", {"outcome": "proven"})
        return folder

    def proven(self, *releases: str, service: str = "k26") -> None:
        entries = [{"release": release, "proven_at": "x", "activation": "a"} for release in releases]
        self.write(self.service(service) / "proven.json", {"releases": entries})

    def found(self, name: str, text: str = "", *, ours: bool = False, service: str = "k26") -> Path:
        folder = self.service(service) / "found" / name
        self.write(folder / "unit", text)
        self.write(folder / "found.json", {"ours": ours, "captured_at": f"2026-01-01T00:00:{self._now}"})
        return folder

    def venv(self, name: str) -> Path:
        self.write(self.state / "venvs" / name / "bin/python", "x" * 5000)
        self.write(self.state / "venvs" / name / ".sglang-fleet.json", {"venv_id": name})
        return self.state / "venvs" / name

    def toolkit(self, name: str) -> Path:
        self.write(self.state / "cuda" / name / "nvidia/cu13/bin/nvcc", "")
        self.write(self.state / "cuda" / name / ".sglang-fleet.json", {})
        return self.state / "cuda" / name

    def installed(self, release: str, *, service: str = "k26") -> None:
        """Have a unit of the host name a release."""
        self.named.releases.add((service, release))

    def prune(self, *, keep: int = 0, references: Callable[[Reader], Mentions] | None = None, **more: Any) -> Removal:
        removal = Removal(self.state)
        prune(Asked(self.state, RUN, keep, **more), removal, references=references or (lambda _: self.named))
        return removal

    def names(self, *folders: str) -> set[str]:
        """What is in a folder, but for locks."""
        folder = self.state.joinpath(*folders)
        return {path.name for path in folder.glob("*") if not path.name.startswith(".lock")}

    def releases(self, service: str = "k26") -> set[str]:
        return self.names("services", service, "releases")


def seven(disk: Disk) -> None:
    """Releases r1 to r7 of k26, each with a venv of its own, r5 installed and proven."""
    for number in range(1, 8):
        disk.venv(f"v{number}")
        disk.release(f"r{number}", venv=f"v{number}")
    disk.proven("r1", "r5")
    disk.installed("r5")
