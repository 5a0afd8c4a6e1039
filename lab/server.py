"""The lab's HTTP server: a package index (PEP 503) over a folder of wheels, and the apt repository.

    python -m lab.server ADDRESS PORT

/simple/                  the index, made from the wheels' names on each request
/wheels/NAME              a wheel
/real/simple/             an index like it, with SGLang itself in place of the stand-in
/real/wheels/NAME         a wheel of that one
/cuda/DISTRO/ARCH/NAME    the apt repository, the same one for every distribution
"""

import functools
import hashlib
import html
import re
import shutil
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from . import repository, wheels
from .real import index as real_index

# The second one's name follows from what it is made of; who changes that brings the lab up again.
INDEXES: dict[str, Callable[[], Path]] = {
    "": wheels.index_folder,
    "/real": functools.cache(real_index.folder),
}
INDEX = re.compile(r"(/real|)/(simple|wheels)(?:/([^/]*)/?)?")
CUDA = re.compile(r"/cuda/[a-z0-9]+/x86_64/(?:\./)?([^/]+)")


@functools.cache
def _digest(path: Path, _changed_at: int) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _page(links: list[tuple[str, str]]) -> bytes:
    anchors = "".join(f'<a href="{html.escape(target)}">{html.escape(text)}</a><br>\n' for target, text in links)
    return f"<!DOCTYPE html>\n<html><body>\n{anchors}</body></html>\n".encode()


def index_page(project: str, *, of: str = "") -> bytes | None:
    """The page of one project, or of all when `project` is empty; None when there is no such project.

    Args:
        project: its name, as indexes write it.
        of: which index: what its path begins with.
    """
    found = sorted(INDEXES[of]().glob("*.whl"))
    if not project:
        return _page([(f"{of}/simple/{name}/", name) for name in sorted({real_index.project(one) for one in found})])
    own = [wheel for wheel in found if real_index.project(wheel) == project]
    if not own:
        return None
    return _page([(f"{of}/wheels/{one.name}#sha256={_digest(one, one.stat().st_mtime_ns)}", one.name) for one in own])


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD; anything that is not listed above is 404."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self.do_GET()

    def do_GET(self) -> None:
        """Answer with a page or a file."""
        path = self.path.partition("?")[0]
        if found := INDEX.fullmatch(path):
            of, kind, name = found[1], found[2], unquote(found[3] or "")
            if kind == "simple":
                self._send(index_page(name, of=of))
            else:
                self._send_file(INDEXES[of]() / Path(name).name)
        elif found := CUDA.fullmatch(path):
            self._send_file(repository.folder() / found[1])
        else:
            self._send(None)

    def _send(self, body: bytes | None) -> None:
        content = b"not found\n" if body is None else body
        self.send_response(HTTPStatus.NOT_FOUND if body is None else HTTPStatus.OK)
        self.send_header("Content-Type", "text/plain" if body is None else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _send_file(self, path: Path) -> None:
        if not path.is_file():
            self._send(None)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(path.stat().st_size))
        self.end_headers()
        if self.command != "HEAD":
            with path.open("rb") as handle:
                shutil.copyfileobj(handle, self.wfile, 1 << 20)


class Server(ThreadingHTTPServer):
    """Threads do not keep the server alive, and a queue long enough for a whole fleet at once."""

    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
