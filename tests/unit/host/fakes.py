"""A host that needs no systemd: one unit, a clock that only moves when somebody sleeps, servers that do as told."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglang_fleet.host.activation.events import Events
from sglang_fleet.host.activation.found import section_value
from sglang_fleet.host.activation.gate import Surroundings
from sglang_fleet.host.activation.groundwork import Tools
from sglang_fleet.host.activation.layout import Layout, UnitFiles
from sglang_fleet.host.activation.outcome import Request
from sglang_fleet.host.activation.releases import listens
from sglang_fleet.host.activation.switch import Switch
from sglang_fleet.host.activation.transaction import Transaction
from sglang_fleet.host.machine.answers import ANSWERED, LOADING, SILENT, STARTING, Answer, Question
from sglang_fleet.host.machine.journal import Masks
from sglang_fleet.host.machine.processes import Process
from sglang_fleet.host.machine.units import Status, SystemctlError

if TYPE_CHECKING:
    from collections.abc import Callable

UNIT = "sglang-k26.service"
GROUP = f"/system.slice/{UNIT}"
BY_HAND = "by hand"
TIMEOUT_STOP = 20.0
GOOD = Answer(ANSWERED, "answered a completion")


class FakeClock:
    """`at` is what happens at which moment, once somebody sleeps past it; `wrong` is how far the time of day is off."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.wrong = 0.0
        self.boots = 1
        self.at: list[tuple[float, Callable[[], object]]] = []

    def monotonic(self) -> float:
        return self.now

    def since_boot(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1.8e9 + self.now + self.wrong

    def boot(self) -> str:
        return f"boot{self.boots}"

    def utc(self) -> str:
        return f"2026-11-29T16:15:{self.now - 1000:06.2f}Z"

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        due = [happening for happening in self.at if happening[0] <= self.now]
        self.at = [happening for happening in self.at if happening not in due]
        for _, happens in due:
            happens()


@dataclass(frozen=True)
class Server:
    """How the server of one release behaves. Times in seconds."""

    ready_after: float = 1.0
    exits_after: float | None = None
    exit_status: int = 1
    stop_takes: float = 0.0
    deaf: bool = False  # also to systemd's own kill, so that ours can be seen
    answer: Answer = GOOD
    restarts_at_once: bool = False


@dataclass
class FakeSystemd:
    """One unit. What it was told is in `told`; `broken` commands fail."""

    clock: FakeClock
    files: UnitFiles
    servers: dict[str, Server] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    going_down: bool = False
    loaded: str = ""
    running: str = ""
    started: float = 0.0
    stopping_since: float | None = None
    start_wanted: bool = False
    pid: int = 0
    invocation: int = 0
    restarts: int = 0
    exited: float = 0.0
    failed: bool = False
    enabled: bool = False
    changed: bool = False

    def do(self, *arguments: str) -> None:
        words = [word for word in arguments if not word.startswith("--") and word != UNIT]
        word = words[0]
        self.told.append(word)
        if word in self.broken:
            raise SystemctlError(f"`systemctl {word}`: no")
        getattr(self, word.replace("-", "_"))()

    def shutting_down(self) -> bool:
        return self.going_down

    def daemon_reload(self) -> None:
        self.loaded = installed_name(self.files)

    def reset_failed(self) -> None:
        self.failed = False

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False

    def restart(self) -> None:
        self.stop()
        self.start_wanted = True
        self._advance()

    def stop(self) -> None:
        self._advance()
        self.start_wanted = False
        if self.pid:
            self.stopping_since = self.clock.now

    def kill(self) -> None:
        if self.pid:
            self._end(0)

    def start(self, name: str) -> None:
        """Run a server as if it had been started before the test."""
        self.running, self.started, self.pid = name, self.clock.now, self.pid + 100
        self.invocation += 1

    def show(self, unit: str) -> Status:
        assert unit == UNIT
        self._advance()
        there = self.files.path.exists() or bool(self.pid)
        base = Status(
            load="loaded" if there else "not-found",
            invocation=f"i{self.invocation}" if self.invocation else "",
            restarts=self.restarts,
            enabled="enabled" if self.enabled else "disabled",
            timeout_stop=TIMEOUT_STOP,
            restart="always",
            control_group=GROUP if self.pid else "",
            fragment=str(self.files.path) if self.files.path.exists() else "",
        )
        if self.pid:
            stopping = self.stopping_since is not None
            return replace(
                base,
                active="deactivating" if stopping else "active",
                sub="stop-sigterm" if stopping else "running",
                main_pid=self.pid,
                started=self.started,
            )
        if self.failed:
            status = self.servers.get(self.running, Server()).exit_status
            ended = replace(base, exit_code=1, exit_status=status, started=self.started, exited=self.exited)
            return replace(ended, active="failed", sub="failed", result="exit-code")
        return base

    def _advance(self) -> None:
        server = self.servers.get(self.running, Server())
        if self.pid and self.stopping_since is not None and not server.deaf:
            if self.clock.now - self.stopping_since >= min(server.stop_takes, TIMEOUT_STOP):
                self._end(0)
        elif self.pid and server.exits_after is not None and self.clock.now - self.started >= server.exits_after:
            self._end(server.exit_status)
            if server.restarts_at_once:
                self.restarts += 1
                self.start(self.running)
        if not self.pid and self.start_wanted:
            self.start_wanted = False
            self.restarts = 0
            self.start(self.loaded)

    def _end(self, status: int) -> None:
        self.pid, self.stopping_since, self.exited = 0, None, self.clock.now
        self.failed = status != 0


class FakeAsker:
    """Answers as the running server would."""

    def __init__(self, systemd: FakeSystemd) -> None:
        self._systemd = systemd
        self.asked: list[Question] = []

    def ask(self, question: Question) -> None:
        self.asked.append(question)

    def answer(self) -> Answer | None:
        systemd = self._systemd
        systemd.show(UNIT)
        server = systemd.servers.get(systemd.running, Server())
        if not systemd.pid:
            return Answer(STARTING, "connection refused, starting")
        if systemd.clock.now - systemd.started < server.ready_after:
            return Answer(LOADING, "503, loading")
        return None if server.answer.kind == SILENT else server.answer

    def healthy(self) -> bool:
        return False

    def wait(self, seconds: float) -> bool:
        if self.answer() is None:
            self._systemd.clock.sleep(seconds)
        return self.answer() is not None


def installed_name(files: UnitFiles) -> str:
    """The release the installed unit names, or BY_HAND."""
    if not files.path.exists():
        return ""
    return section_value(files.path.read_bytes(), "Release") or BY_HAND


class FakeHost:
    """A host under a temporary folder, with the transaction's real file handling."""

    def __init__(self, folder: Path) -> None:
        self.layout = Layout(folder / "state", "k26")
        self.files = UnitFiles(UNIT, folder=folder / "etc", elsewhere=(folder / "run",))
        self.files.folder.mkdir(parents=True)
        self.clock = FakeClock()
        self.systemd = FakeSystemd(self.clock, self.files)
        self.asker = FakeAsker(self.systemd)
        self.masks = Masks()
        self.said: list[str] = []
        self.tools = Tools(
            verify=lambda _unit, _name: [],
            port_holders=lambda _port, _group: [],
            gpu_holders=lambda _gpus, _group, **_more: [],
            running_release=lambda _pid, _group: self._running(),
        )
        self.lines: list[str] = []
        self.stranger = ""
        self.takers: list[Process] = []
        self.count = 0

    def _running(self) -> str:
        return "" if self.systemd.running == BY_HAND else self.systemd.running

    def release(
        self, name: str, *, server: Server | None = None, soak: float = 5.0, complete: bool = True, **more: Any
    ) -> str:
        folder = self.layout.release(name)
        folder.mkdir(parents=True)
        unit = f"[Service]\nExecStart=/x\n[X-Sglang-Fleet]\nService=k26\nRelease={name}\n".encode()
        (folder / "unit").write_bytes(unit)
        manifest = {
            "service": "k26",
            "release": name,
            "unit_name": UNIT,
            "port": 30001,
            "files": {"unit": hashlib.sha256(unit).hexdigest()},
            "gate": {"port": 30001, "startup_deadline": 60.0, "interval": 1.0, "soak": soak},
            **more,
        }
        if complete:
            (folder / "release.json").write_text(json.dumps(manifest))
        self.systemd.servers[name] = server or Server()
        return name

    def _deaf(self, _: Status) -> bool:
        return not listens(self.layout, self.systemd.running)

    def place(self, name: str, *, proven: bool = True) -> None:
        """Make a release the one that is installed, runs, and is proven."""
        self.files.path.write_bytes((self.layout.release(name) / "unit").read_bytes())
        self.systemd.daemon_reload()
        self.systemd.enabled = True
        self.systemd.start(name)
        if proven:
            self.prove(name)

    def place_by_hand(self, *, running: bool = True) -> bytes:
        text = b"[Service]\nExecStart=/opt/python -m sglang.launch_server --port 30009 --api-key hush-hush\n"
        self.files.path.write_bytes(text)
        self.systemd.daemon_reload()
        if running:
            self.systemd.start(BY_HAND)
        return text

    def place_sibling(self, name: str) -> bytes:
        """Install and run a release of another service under this service's unit: what a renamed service leaves."""
        folder = Layout(self.layout.state, "old").release(name)
        folder.mkdir(parents=True)
        unit = f"[Service]\nExecStart=/x --port 30009\n[X-Sglang-Fleet]\nService=old\nRelease={name}\n".encode()
        texts = {"unit": unit, "secrets.yaml": b'api-key: "hush-hush"\n'}
        for file, text in texts.items():
            (folder / file).write_bytes(text)
        manifest = {
            "service": "old",
            "release": name,
            "unit_name": UNIT,
            "port": 30009,
            "files": {file: hashlib.sha256(text).hexdigest() for file, text in texts.items()},
            "gate": {"port": 30009, "startup_deadline": 60.0, "interval": 1.0, "soak": 5.0, "probe": "embedding"},
        }
        (folder / "release.json").write_text(json.dumps(manifest))
        self.files.path.write_bytes(unit)
        self.systemd.daemon_reload()
        self.systemd.enabled = True
        self.systemd.start(name)
        return unit

    def prove(self, *names: str) -> None:
        entries = [{"release": name, "proven_at": "2026-01-01T00:00:00Z", "activation": "a0"} for name in names]
        self.layout.proven.write_text(json.dumps({"releases": entries}))

    def proven(self) -> list[str]:
        try:
            return [entry["release"] for entry in json.loads(self.layout.proven.read_text())["releases"]]
        except FileNotFoundError:
            return []

    def transaction(
        self,
        release: str,
        mode: str = "activate",
        *,
        gate: dict[str, Any] | None = None,
        again: bool = False,
        **more: Any,
    ) -> Transaction:
        """A new transaction; the last one once more, as after a kill, if `again`."""
        self.count += not again
        request = Request(f"a{self.count}", "k26", release, UNIT, mode, "anna", gpu_check=True, gate=gate or {}, **more)
        folder = self.layout.activation(request.activation)
        events = Events(folder, "k26", self.clock, self.masks, self.said.append)
        around = Surroundings(
            self.systemd,
            self.clock,
            self.asker,
            events,
            lambda _port, _group: self.stranger,
            lambda _port, _group: self.takers,
        )
        switch = Switch(self.files, self.systemd, self.clock, events, lambda _group: [], self._deaf)
        return Transaction(
            request,
            self.layout,
            self.files,
            around,
            switch,
            self.tools,
            lambda _invocation, _masks: list(self.lines),
            program=__file__,
        )

    def holder(self, pid: int = 77) -> Process:
        return Process(pid, "python -m sglang.launch_server", "other.service", "/system.slice/other.service")
