"""Drives the host program's activation on a lab host, with releases written straight into the state folder.

The stand-in's faults are a file per release, named by the release's own environment, so that two releases on one host
can behave differently.
"""

import hashlib
import json
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lab import Host, story
from sglang_fleet.program import program

STATE = "/var/lib/sglang-fleet"
SERVICE = "k26"
UNIT = "sglang-k26.service"
PORT = 30001
VENV = f"{STATE}/venvs/v1"
FOLDER = f"{STATE}/services/{SERVICE}"
PROGRAM = f"{STATE}/host/program.pyz"
TRANSIENT = f"sglang-fleet-activate-{SERVICE}.service"
MODEL = "/root/models/tiny"

QUICK = {"start_delay": 0.1, "health_503_for": 0.1}

# Reads {"path": [mode, text], ...} and writes each file, folders included.
WRITER = """\
import json, os, sys
for path, (mode, text) in json.load(sys.stdin).items():
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    os.chmod(path, int(mode, 8))
"""

UNIT_TEXT = """\
[Unit]
Description=test {release}
StartLimitIntervalSec={limit_interval}
StartLimitBurst={limit_burst}

[Service]
Type=exec
EnvironmentFile={folder}/environment
ExecStart={venv}/bin/python -m sglang.launch_server --model-path {model} --port {port} --host 0.0.0.0{options}
KillMode=mixed
TimeoutStopSec={timeout_stop}
Restart=always
RestartSec={restart_sec}
{service_lines}
[Install]
WantedBy=multi-user.target

[X-Sglang-Fleet]
Service={service}
Release={release}
"""


def wait_for(what: Callable[[], Any], *, seconds: float = 20, pause: float = 0.1) -> Any:  # noqa: ANN401 - whatever is waited for
    """The first true value of `what`; AssertionError when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(pause)
    return value


@dataclass(frozen=True)
class Shape:
    """What a test varies in a release."""

    options: str = ""
    faults: dict[str, Any] = field(default_factory=dict)
    service_lines: str = ""
    timeout_stop: float = 20
    restart_sec: float = 1
    limit_burst: int = 5
    limit_interval: float = 600
    soak: float = 0.2
    startup_deadline: float = 20
    secret: str = ""
    address: str | None = None
    completion: float = 10
    venv: str = VENV
    cuda_home: str = f"{STATE}/cuda/13.0"
    gate: dict[str, Any] = field(default_factory=dict)
    """What the health gate is asked for beside the fields above."""
    args: dict[str, Any] = field(default_factory=dict)
    """Arguments as the manifest has them; those of the command line stand in `options`."""


class Rig:
    """One host with the host program, a venv with the stand-in server, and whatever releases a test makes."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._count = 0
        content = program().content
        target = host.root / PROGRAM.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        story.write(host.root)
        host.run(
            f"systemctl disable -q {story.UNIT}; rm -f /etc/systemd/system/{story.UNIT}; systemctl daemon-reload; "
            f"mkdir -p {STATE}/venvs {STATE}/cuda/13.0 {MODEL}; cp -a /{story.VENV} {VENV}; "
            f"echo '{{}}' > {VENV}/.sglang-fleet.json"
        )

    def write(self, files: dict[str, tuple[str, str]]) -> None:
        """Write files on the host: path → (mode, text)."""
        self.host.run(f"python3 -c {shlex.quote(WRITER)}", stdin=json.dumps(files))

    def faults(self, release: str, **faults: object) -> None:
        """Switch a release's faults, also while it runs."""
        self.write({f"/etc/standin/{release}.json": ("0644", json.dumps({**QUICK, **faults}))})

    def release(self, name: str, shape: Shape | None = None, *, complete: bool = True) -> str:
        """Put a release under the state folder; without its manifest when it is not to be `complete`."""
        shape = shape or Shape()
        folder = f"{FOLDER}/releases/{name}"
        options = shape.options + (f" --config {folder}/secrets.yaml" if shape.secret else "")
        texts = {
            "unit": UNIT_TEXT.format(
                release=name,
                folder=folder,
                venv=shape.venv,
                model=MODEL,
                port=PORT,
                options=f" {options}" if options else "",
                timeout_stop=shape.timeout_stop,
                restart_sec=shape.restart_sec,
                limit_burst=shape.limit_burst,
                limit_interval=shape.limit_interval,
                service_lines=shape.service_lines,
                service=SERVICE,
            ),
            "environment": f"SGLANG_FLEET_RELEASE={name}\nSGLANG_STANDIN_FAULTS=/etc/standin/{name}.json\n",
        }
        if shape.secret:
            texts["secrets.yaml"] = f"api-key: {json.dumps(shape.secret)}\n"
        manifest = {
            "schema": 1,
            "service": SERVICE,
            "release": name,
            "unit_name": UNIT,
            "venv": shape.venv,
            "cuda_home": shape.cuda_home,
            "host": "0.0.0.0",  # noqa: S104 - what a release says
            "port": PORT,
            "gpus": None,
            "files": {file: hashlib.sha256(text.encode()).hexdigest() for file, text in texts.items()},
            "gate": {
                "address": shape.address,
                "completion": shape.completion,
                "port": PORT,
                "startup_deadline": shape.startup_deadline,
                "interval": 0.15,
                "soak": shape.soak,
                "probe": "generate",
                **shape.gate,
            },
            "spec": {"args": {"model_path": MODEL, **shape.args}},
        }
        files = {f"{folder}/{file}": ("0600" if file != "unit" else "0644", text) for file, text in texts.items()}
        files[f"/etc/standin/{name}.json"] = ("0644", json.dumps({**QUICK, **shape.faults}))
        if complete:
            files[f"{folder}/release.json"] = ("0644", json.dumps(manifest))
        self.write(files)
        return name

    def install(self, release: str) -> None:
        """Make a release the unit file, as an activation that died right after that would leave it."""
        self.host.run(f"cp {FOLDER}/releases/{release}/unit /etc/systemd/system/{UNIT}")

    def placed(self, name: str, shape: Shape | None = None) -> None:
        """Make a release the one that runs and is proven, without an activation: the past of a test's story."""
        self.release(name, shape)
        self.install(name)
        proven = {"releases": [{"release": name, "proven_at": "2026-01-01T00:00:00Z", "activation": "a000"}]}
        self.write({f"{FOLDER}/proven.json": ("0644", json.dumps(proven))})
        self.host.run(f"systemctl daemon-reload; systemctl enable --quiet --now {UNIT}")
        wait_for(self.answers)

    def request(self, release: str, *, mode: str = "activate", **more: object) -> dict[str, Any]:
        """A request for a new activation."""
        self._count += 1
        fixed = {"state": STATE, "service": SERVICE, "unit_name": UNIT, "by": "test@controller"}
        return {**fixed, "activation": f"a{self._count:03}", "release": release, "mode": mode, **more}

    def command(self, name: str, request: dict[str, Any], *, check: bool = True) -> str:
        """Run one command of the host program; what it printed, errors too."""
        done = self.host.run(f"python3 -I {PROGRAM} {name} 2>&1", stdin=json.dumps(request), check=check)
        return done.stdout

    def activate(self, release: str, *, mode: str = "activate", **more: object) -> "Ended":
        """Activate to the end; the result and what the operator saw."""
        request = self.request(release, mode=mode, **more)
        said = self.command("activate", request)
        return Ended(said, json.loads(self.command("result", request)))

    def show(self, *names: str) -> dict[str, str]:
        """Properties of the service's unit."""
        done = self.host.run(f"systemctl show {UNIT} --property={','.join(names)}")
        return dict(line.split("=", 1) for line in done.stdout.splitlines())

    def running(self) -> str:
        """The release that really runs, by the main process's own environment; "" when none does."""
        done = self.host.run(
            f"tr '\\0' '\\n' < /proc/$(systemctl show -P MainPID {UNIT})/environ | grep ^SGLANG_FLEET_RELEASE=",
            check=False,
        )
        return done.stdout.strip().partition("=")[2]

    def answers(self) -> bool:
        """Whether the server is healthy."""
        return self.host.run(f"curl -sf -o /dev/null -m 5 http://127.0.0.1:{PORT}/health", check=False).returncode == 0


@dataclass(frozen=True)
class Ended:
    """An activation that is over: what was said, and the result."""

    said: str
    result: dict[str, Any]

    @property
    def outcome(self) -> str:
        """The outcome."""
        return str(self.result["outcome"])

    @property
    def reason(self) -> str:
        """Why, in one line."""
        return str(self.result["reason"])
