"""A small HTTP/1.1 server: a thread a request, one request a connection."""

from __future__ import annotations

import json
import socket
import socketserver
from contextlib import suppress
from typing import TYPE_CHECKING

from . import answers, logs

if TYPE_CHECKING:
    from io import BufferedIOBase

    from .reply import Answer
    from .state import State

_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    503: "Service Unavailable",
}


class Handler(socketserver.StreamRequestHandler):
    """One connection."""

    server: Server

    def handle(self) -> None:
        """Read one request and answer it."""
        method, _, rest = self.rfile.readline(65536).decode("latin-1").rstrip().partition(" ")
        target = rest.partition(" ")[0]
        if not target:
            return
        headers = _headers(self.rfile)
        body = self.rfile.read(int(headers.get("content-length", "0")))
        path = target.partition("?")[0]
        # Only what does work is waited for when the server drains, and until the last byte is sent.
        counted = method == "POST"
        try:
            if counted:
                self.server.state.enter()
            authorization = headers.get("authorization", "")
            self._reply(
                answers.answer(self.server.state, method=method, path=path, authorization=authorization, body=body),
                request=f"{method} {target} HTTP/1.1",
            )
        finally:
            if counted:
                self.server.state.leave()

    def _reply(self, answer: Answer, *, request: str) -> None:
        status = f"{answer.status} {_REASONS[answer.status]}"
        host, port = self.client_address[:2]
        logs.uvicorn(f'{host}:{port} - "{request}" {status}')
        with suppress(OSError):  # the client may have gone away
            self._send(answer, f"HTTP/1.1 {status}\r\nserver: uvicorn\r\nconnection: close\r\n")

    def _send(self, answer: Answer, head: str) -> None:
        if answer.events is not None:
            self.wfile.write(f"{head}content-type: text/event-stream; charset=utf-8\r\n\r\n".encode())
            for event in answer.events:
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")
            return
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        body = text.encode()
        head += f"content-length: {len(body)}\r\n"
        head += f"content-type: {answer.content_type}\r\n\r\n" if body else "\r\n"
        self.wfile.write(head.encode() + body)


def _headers(stream: BufferedIOBase) -> dict[str, str]:
    headers = {}
    while line := stream.readline(65536).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return headers


class Server(socketserver.ThreadingTCPServer):
    """Listens as soon as it is made.

    Raises:
        OSError: when the address is in use.
    """

    allow_reuse_address = True
    daemon_threads = True
    # A request that hangs must not keep the process from ending once the drain is over.
    block_on_close = False
    request_queue_size = 128

    def __init__(self, state: State) -> None:
        self.state = state
        loopback = state.faults.get("loopback_only")
        host = "127.0.0.1" if loopback else str(state.arguments["host"])
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, int(state.arguments["port"])), Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """One client's trouble is no trouble of the server's: the default prints a trace for each."""
