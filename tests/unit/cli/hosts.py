"""Hosts that answer what a test has written down, in place of those that a connection would be made to."""

from collections.abc import Callable, Mapping
from typing import Any

from roles.asking import Said

Answers = Mapping[str, Mapping[str, Said]]


class FakeHosts:
    """Stands for `roles.asking.Hosts`.

    Attributes:
        requests: what was asked, in order: the command, and the request of each host.
    """

    def __init__(self, answers: Answers) -> None:
        """Have these answers ready: command → host → what it says."""
        self._answers = answers
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def ask_all(self, command: str, request: Mapping[str, Any]) -> dict[str, Said]:
        """As the real ones."""
        return self.ask(command, dict.fromkeys(self._answers[command], request), read_only=True)

    def ask(self, command: str, requests: Mapping[str, Any], *, read_only: bool = False) -> dict[str, Said]:
        """As the real ones."""
        del read_only
        self.requests.append((command, dict(requests)))
        return {host: self._answers[command][host] for host in requests}

    def ask_hosts(self, status: int = 0) -> Callable[..., int]:
        """What takes the place of `roles.asking.ask_hosts`."""

        def called(_inventory: str, work: Callable[["FakeHosts"], None], **_: object) -> int:
            work(self)
            return status

        return called
