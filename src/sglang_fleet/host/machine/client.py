"""Requests to a server, each bounded in time, and how one fails."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import http.client

OK = 200
UNAVAILABLE = 503
ASKS_FOR_A_KEY = (401, 403)

_LARGEST_BODY = 8 << 20
_SHOWN = 120


class NoAnswerError(Exception):
    """A request came to nothing. `refused`: nobody listens there; `late`: it took longer than it may."""

    def __init__(self, reason: str, *, refused: bool = False, late: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused
        self.late = late


@dataclass(frozen=True)
class Reply:
    """The answer to one request."""

    status: int
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """Return the body's value; None when it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    def short(self) -> str:
        """Return the beginning of the body, on one line."""
        return short(self.body.decode("utf-8", "replace"))


@dataclass(frozen=True)
class Client:
    """One address of a server, and who asks there.

    Attributes:
        api_key: sent as a bearer token; "" for none.
        tls: whether it speaks HTTPS; its certificate is for its own clients to check, here only its answers matter.
        until: the moment of time.monotonic() after which nothing is asked any more; None for no such moment.
    """

    host: str
    port: int
    api_key: str = ""
    tls: bool = False
    until: float | None = None

    def within(self, seconds: float) -> Client:
        """Return the same with so many seconds for everything it is going to ask."""
        return replace(self, until=time.monotonic() + seconds)

    def get(self, path: str, *, timeout: float) -> Reply:
        """Ask for something. Raises NoAnswerError."""
        return self._request("GET", path, None, timeout)

    def post(self, path: str, body: dict[str, Any], *, timeout: float) -> Reply:
        """Send something. Raises NoAnswerError."""
        return self._request("POST", path, body, timeout)

    def _request(self, method: str, path: str, body: dict[str, Any] | None, timeout: float) -> Reply:
        import http.client  # noqa: PLC0415 - slow to load, and most commands ask nobody

        if self.until is not None:
            timeout = min(timeout, self.until - time.monotonic())
        late = NoAnswerError(f"did not come back within {max(timeout, 0):.0f} s", late=True)
        if timeout <= 0:
            raise late
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        try:
            with contextlib.closing(self._connection(timeout)) as connection:
                connection.request(method, path, body=json.dumps(body) if body is not None else None, headers=headers)
                response = connection.getresponse()
                return Reply(response.status, response.read(_LARGEST_BODY))
        except ConnectionRefusedError:
            raise NoAnswerError("connection refused", refused=True) from None
        except (TimeoutError, socket.timeout):  # two types before Python 3.10
            raise late from None
        except (OSError, http.client.HTTPException) as error:
            said = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise NoAnswerError(short(said)) from None

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        import http.client  # noqa: PLC0415 - as above

        if not self.tls:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        import ssl  # noqa: PLC0415 - few servers need it

        context = ssl._create_unverified_context()  # noqa: S323, SLF001 - the address is this host's own
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=context)


def short(what: object) -> str:
    """Return something's words on one line, and not too many."""
    text = " ".join(str(what).split()) or type(what).__name__
    return text[:_SHOWN]
