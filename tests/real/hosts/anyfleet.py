"""What a test may ask of a fleet that runs SGLang itself, whether its hosts are a lab's or an operator's own."""

import http.client
import json
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.lab.commands import Ended
from tests.lab.operator import STATE, Ran

PROMPT = "w3 w4 w5"
OWN_KEY = "the service's own"
"""Stands for the key of the service, whatever that is."""


@dataclass
class Streamed:
    """A streamed completion, as far as it has come.

    Attributes:
        status: of the answer; 0 as long as there is none.
        tokens: how many have come.
        whole: whether the server has said that this is all.
    """

    status: int = 0
    tokens: int = 0
    whole: bool = False

    def read(self, line: bytes) -> None:
        """Take one line of the answer in."""
        event = line.decode().removeprefix("data: ").strip()
        if event == "[DONE]":
            self.whole = True
        elif event:
            self.tokens = json.loads(event)["meta_info"]["completion_tokens"]


class AnyHost(Protocol):
    """A host on which a test may do by hand what an incident would do."""

    @property
    def name(self) -> str:
        """As in the inventory."""

    @property
    def address(self) -> str:
        """At which the controller reaches it."""

    def command(self, command: str) -> list[str]:
        """What to run on the controller so that a shell of the host, as root, runs the command."""

    def run(
        self, command: str, *, check: bool = True, stdin: str = "", timeout: float | None = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run it and wait; a LabError where `check` is set and it failed."""


class AnyFleet(ABC):
    """One service on some hosts, and what its operator can do and see.

    Attributes:
        service: its name.
        unit: its unit.
        port: at which it listens.
        inventory: as the commands take it.
        answer: what it says to PROMPT without sampling; empty where that is not known.
    """

    service: str
    unit: str
    port: int
    inventory: str
    answer: str = ""

    # --- what each kind of fleet does in its own way

    @property
    @abstractmethod
    def hosts(self) -> Sequence[AnyHost]:
        """Its hosts, in order."""

    @property
    @abstractmethod
    def key(self) -> str | None:
        """The service's API key."""

    @abstractmethod
    def change(self, **changes: Any) -> None:
        """From now on the base settings with changes to the service: mappings are merged. None: as they are."""

    @abstractmethod
    def start(self, *words: str) -> subprocess.Popen[str]:
        """`pyinfra INVENTORY deploy.py WORDS`, not waited for; its output in one pipe."""

    @abstractmethod
    def deploy(self, *words: str, seconds: float = 600) -> Ran:
        """`pyinfra INVENTORY deploy.py -y`."""

    @abstractmethod
    def plan(self) -> Ran:
        """`pyinfra INVENTORY deploy.py --dry --diff`."""

    @abstractmethod
    def rollback(self, *words: str, seconds: float = 600) -> Ran:
        """`pyinfra INVENTORY rollback.py -y`."""

    @abstractmethod
    def cli(self, *words: str, seconds: float = 600) -> Ended:
        """`sglang-fleet WORDS` in the deployment folder."""

    @abstractmethod
    def link(self, host: AnyHost, port: int, *, timeout: float) -> socket.socket:
        """A connection to a port of a host, at its address. Raises OSError."""

    # --- asking the server

    def ask(
        self,
        host: AnyHost,
        path: str,
        body: object = None,
        *,
        port: int | None = None,
        timeout: float = 60,
        key: str | None = OWN_KEY,
    ) -> tuple[int, Any]:
        """Ask the server on a host as a client would, at the host's address: status and JSON (or text).

        A body makes it a POST. Status 0 stands for no answer, whatever the reason, which is then the second part.
        """
        headers = headers_with(self.key if key == OWN_KEY else key)
        data = None if body is None else json.dumps(body)
        try:
            with self.link(host, port or self.port, timeout=timeout) as link:
                client = http.client.HTTPConnection(host.address, port or self.port, timeout=timeout)
                link.settimeout(timeout)
                client.sock = link
                client.request("GET" if body is None else "POST", path, data, headers)
                answer = client.getresponse()
                text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            return 0, repr(error)
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text

    def stream(self, host: AnyHost, into: Streamed, *, tokens: int, timeout: float) -> None:
        """Complete PROMPT with so many tokens, and read until the server says that it is done or hangs up."""
        sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
        body = json.dumps({"text": PROMPT, "sampling_params": sampling, "stream": True})
        client = http.client.HTTPConnection(host.address, self.port)
        try:
            client.sock = self.link(host, self.port, timeout=timeout)
            client.request("POST", "/generate", body, headers_with(self.key))
            answer = client.getresponse()
            into.status = answer.status
            for line in answer:
                into.read(line)
        except (OSError, http.client.HTTPException):
            pass  # the connection is gone, and what had come is known
        finally:
            client.close()

    def complete(
        self, host: AnyHost, prompt: str = PROMPT, *, tokens: int = 8, port: int | None = None, **sampling: Any
    ) -> str:
        """The text of a completion without sampling.

        Raises:
            AssertionError: there is none.
        """
        parameters = {"max_new_tokens": tokens, "temperature": 0, **sampling}
        status, answer = self.ask(host, "/generate", {"text": prompt, "sampling_params": parameters}, port=port)
        assert status == 200, answer
        return str(answer["text"])

    def answers(self, host: AnyHost) -> bool:
        """Whether it completes PROMPT, and as it has to where that is known."""
        text = self.complete(host)
        return text == self.answer if self.answer else bool(text)

    def server_info(self, host: AnyHost, *, port: int | None = None) -> dict[str, Any]:
        """What the server says it runs with; its version, too."""
        status, answer = self.ask(host, "/server_info", port=port)
        if status == 404:
            status, answer = self.ask(host, "/get_server_info", port=port)
        assert status == 200, answer
        return dict(answer)

    # --- looking at the host

    def release(self, host: AnyHost, *, unit: str | None = None) -> str | None:
        """The release that the unit's main process says it is; None without one."""
        script = (
            f"pid=$(systemctl show -p MainPID --value {unit or self.unit}); [ $pid != 0 ] && "
            "tr '\\0' '\\n' < /proc/$pid/environ | sed -n 's/^SGLANG_FLEET_RELEASE=//p'"
        )
        return host.run(script, check=False).stdout.strip() or None

    def proven(self, host: AnyHost, *, service: str | None = None) -> list[str]:
        """The releases that the host has proven, oldest first."""
        text = host.run(f"cat {STATE}/services/{service or self.service}/proven.json", check=False).stdout
        return [entry["release"] for entry in json.loads(text)["releases"]] if text else []

    def processes(self, host: AnyHost, unit: str | None = None) -> dict[str, int]:
        """The processes of a unit: what each calls itself, such as `sglang::scheduler_PP0`, and its pid on the host.

        The first of several with one name has it alone, the others have their pid behind it; `main` is the unit's own.
        """
        script = (
            f"main=$(systemctl show -p MainPID --value {unit or self.unit}); "
            f"group=$(systemctl show -p ControlGroup --value {unit or self.unit}); "
            'for file in /sys/fs/cgroup/systemd"$group"/cgroup.procs /sys/fs/cgroup/unified"$group"/cgroup.procs '
            '/sys/fs/cgroup"$group"/cgroup.procs; do [ -r "$file" ] && cat "$file"; done 2>/dev/null | sort -un | '
            'while read pid; do if [ "$pid" = "$main" ]; then echo "$pid main"; '
            "else echo \"$pid $(tr '\\0' ' ' < /proc/$pid/cmdline)\"; fi; done"
        )
        found: dict[str, int] = {}
        for line in host.run(script).stdout.splitlines():
            pid, _, name = line.strip().partition(" ")
            found[name if name not in found else f"{name} {pid}"] = int(pid)
        return found


def headers_with(key: str | None) -> dict[str, str]:
    """The headers of a request, with a key or without."""
    return {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
