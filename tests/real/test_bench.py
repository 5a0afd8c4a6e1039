"""`sglang.bench_serving` itself, run by the host program against SGLang itself: its numbers arrive, and no key does."""

import getpass
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sglang_fleet.host import children
from sglang_fleet.host.activation.layout import Layout
from sglang_fleet.host.activation.proofs import records
from sglang_fleet.host.bench import bench, measuring
from sglang_fleet.host.bench.sweep import NUMBERS
from sglang_fleet.systemd_text import environment_line
from tests.real import installed, tiny_model
from tests.real.conftest import Serve

POISON = "poison-41d8cd-api-key"
ADMIN = "poison-98f00b-admin-key"
SWEEP = {"concurrency": [1, 4], "requests": 8, "input_tokens": 32, "output_tokens": 8, "seconds": 300}
REQUEST = {"service": "tiny", "by": "anna@desk", **SWEEP}


class Undisturbed:
    """In the place of what asks systemd: the server of this test is no unit."""

    def check(self) -> None:
        pass


@pytest.fixture(name="layout")
def state_of_a_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setattr(bench, "quiet", lambda *_: Undisturbed())
    monkeypatch.setattr(measuring, "PLACE", tmp_path / "run")
    return Layout(tmp_path / "state", "tiny")


def stage(layout: Layout, release: str, *, url: str, model: Path) -> None:
    """Put a release on the disk as the host program finds it, with both keys; its name is SGLang's version."""
    address = urlsplit(url)
    lines = [environment_line(name, value) for name, value in installed.environment(release).items()]
    texts = {
        "unit": "[Service]\n",
        "environment": "\n".join(lines) + "\n",
        "secrets.yaml": f'admin-api-key: "{ADMIN}"\napi-key: "{POISON}"\n',
    }
    folder = layout.release(release)
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)
    manifest = {
        "service": "tiny",
        "release": release,
        "unit_name": "sglang-tiny.service",
        "user": getpass.getuser(),
        "venv": str(installed.python().parent.parent),
        "host": address.hostname,
        "port": address.port,
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
        "spec": {"args": {"model_path": str(model)}},
    }
    (folder / "release.json").write_text(json.dumps(manifest))


def contents(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@dataclass
class Watched:
    """What the host program has started, and what that wrote and printed."""

    argv: list[str] = field(default_factory=list)
    written: list[bytes] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)


@pytest.fixture(name="watched")
def watch_what_is_started(monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched, run, read = Watched(), children.run, os.pread

    def run_seen(arguments: Sequence[str], **more: Any) -> children.Finished:
        finished = run(arguments, **more)
        watched.argv += arguments
        watched.printed += finished.lines
        return finished

    def read_seen(descriptor: int, length: int, offset: int) -> bytes:
        watched.written.append(read(descriptor, length, offset))
        return watched.written[-1]

    monkeypatch.setattr(children, "run", run_seen)
    monkeypatch.setattr(os, "pread", read_seen)
    return watched


def test_each_release_of_it_gives_its_numbers_and_no_key_gets_out(
    real_server: Serve, layout: Layout, tmp_path: Path, watched: Watched, counts: list[str]
) -> None:
    model = tiny_model.make(tmp_path / "model")
    said: list[str] = []
    with real_server(["--model-path", str(model), "--api-key", POISON, "--admin-api-key", ADMIN]) as server:
        for release in installed.RELEASES:
            stage(layout, release, url=server.url, model=model)
            request = {"state": str(layout.state), **REQUEST, "release": release}
            assert bench.run(request, say=said.append) == 0
            measured = json.loads(said[-1])["bench"]
            assert [point["concurrency"] for point in measured["points"]] == [1, 4]
            for point in measured["points"]:
                assert point["failed"] == 0
                assert all(point[name] > 0 for name in NUMBERS), point
            record = records.read(layout, release)
            assert record is not None
            assert record.bench == measured
            rates = [f"{point['output_tokens_per_second']} at {point['concurrency']}" for point in measured["points"]]
            counts.append(f"bench_serving of {release}, tokens/s: {', '.join(rates)}")

    assert any(POISON.encode() in text for text in watched.written), "no key was in its file: this shows nothing"
    assert any("Successful requests" in line for line in watched.printed)
    texts = [*said, *watched.printed, *watched.argv, contents(layout.folder / "records").decode()]
    for key in (POISON, ADMIN):
        assert not [text for text in texts if key in text]
    assert not list((tmp_path / "run").iterdir())
