"""An HTTP server that replies as a test tells it, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

Reply = tuple[int, Any]

COMPLETED = {"text": " Paris", "meta_info": {"completion_tokens": 4}}


def completed(body: Any) -> Reply:  # noqa: ANN401 - any JSON
    """As many tokens as were asked for."""
    tokens = body["sampling_params"]["max_new_tokens"]
    return 200, {"text": " a" * tokens, "meta_info": {"completion_tokens": tokens}}


class Handler(BaseHTTPRequestHandler):
    server: Talking

    def reply(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        status, content = self.server.answer_to(self.path, self.headers.get("Authorization", ""), body)
        if content == "hang":
            self.server.held.wait(10)
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = reply  # noqa: N815 - http.server's names

    def log_message(self, *_arguments: object) -> None:
        pass


class Talking(ThreadingHTTPServer):
    """On a free port of the loopback address; `replies` by path: status and content, or a function of the body."""

    request_queue_size = 64
    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.replies: dict[str, Reply | Callable[[Any], Reply]] = {
            "/health": (200, {}),
            "/generate": completed,
        }
        self.seen: list[tuple[str, str, Any]] = []
        self.held = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.seen]

    def bodies(self, path: str) -> list[Any]:
        return [body for asked, _, body in self.seen if asked == path]

    def answer_to(self, path: str, authorization: str, body: Any) -> Reply:  # noqa: ANN401 - any JSON
        self.seen.append((path, authorization, body))
        reply = self.replies.get(path, (404, {"detail": "Not Found"}))
        return reply(body) if callable(reply) else reply

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up is no trouble here."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.held.set()
        self.shutdown()
        self._thread.join()
        self.server_close()
