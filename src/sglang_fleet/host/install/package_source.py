"""Where a host gets packages from: an index, folders and pages of wheels, or what the host is set up with.

No index is named here: it comes from the request, or from the host's own pip or uv settings.
"""

from __future__ import annotations

import base64
import configparser
import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

from ..children import mask
from ..errors import HostError

if TYPE_CHECKING:
    from collections.abc import Iterator

LISTING_BYTES = 32 << 20
"""The largest index page that is read."""

READ_SECONDS = 30.0
"""Silence of a server that counts as failure."""

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.5, text/html;q=0.1"
_INDEX_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")


@dataclass(frozen=True)
class Source:
    """An index and further places of wheels; without any, installers use their own default."""

    index_url: str | None
    find_links: tuple[str, ...]

    @property
    def urls(self) -> tuple[str, ...]:
        """Every address, to be masked in what is shown."""
        return (*([self.index_url] if self.index_url else []), *self.find_links)


@dataclass(frozen=True)
class Link:
    """A file an index or a folder offers; `sha256` only where it says one."""

    name: str
    address: str
    sha256: str | None


def source_of(request: dict[str, Any]) -> Source:
    """Return where this request's packages come from: named there, or else set up on this host."""
    return Source(request.get("index_url") or host_index(), tuple(request.get("find_links") or ()))


def host_index() -> str | None:
    """Return the index this host's settings name: uv's or pip's variables, then pip's files, nearest one."""
    for name in _INDEX_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    home = Path(os.environ.get("HOME") or "/root")
    files = [
        os.environ.get("PIP_CONFIG_FILE", ""),
        str(Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config", "pip/pip.conf")),
        str(home / ".pip/pip.conf"),
        "/etc/xdg/pip/pip.conf",
        "/etc/pip.conf",
    ]
    for file in filter(None, files):
        settings = configparser.RawConfigParser(strict=False)
        try:
            settings.read(file, encoding="utf-8")
        except (OSError, ValueError, configparser.Error):
            continue
        found = settings.get("global", "index-url", fallback="").strip()
        if found:
            return found
    return None


def offers(source: Source, project: str, *, until: float) -> Iterator[Link]:
    """Yield the files offered for a project, near places first; HostError where a place cannot be read."""
    for place in source.find_links:
        if place.split("#")[0].endswith(".whl"):
            yield _link(place, base="")
        else:
            yield from _listing(place, until=until)
    if source.index_url:
        yield from _listing(f"{source.index_url.rstrip('/')}/{project}/", until=until)


def download(address: str, *, source: Source, limit: int, until: float) -> bytes:
    """Return what a path or URL holds: `limit` bytes at most, by the moment `until`. Raises HostError."""
    local = _local(address)
    try:
        if local is not None:
            return local.read_bytes()
        body, _, _ = _get(address, source=source, limit=limit, until=until)
    except (OSError, ValueError) as error:
        raise _unreadable(address, error, source) from error
    return body


def _listing(place: str, *, until: float) -> Iterator[Link]:
    """Yield the links of one folder, index page or index answer."""
    local = _local(place)
    try:
        if local is not None:
            yield from _folder(local)
            return
        body, kind, at = _get(place, source=Source(place, ()), limit=LISTING_BYTES, until=until)
    except (OSError, ValueError) as error:
        raise _unreadable(place, error, Source(place, ())) from error
    yield from _parse(body.decode("utf-8", "replace"), kind=kind, base=at)


def _folder(folder: Path) -> Iterator[Link]:
    """Yield the wheels in a folder of this host, and those its index.html links to. Raises OSError."""
    for name in sorted(os.listdir(folder)):  # a glob passes over a folder that is missing
        if name.endswith(".whl"):
            yield Link(name, str(folder / name), None)
    page = folder / "index.html"
    if page.is_file():
        yield from _parse(page.read_text(encoding="utf-8", errors="replace"), kind="text/html", base=page.as_uri())


def _parse(text: str, *, kind: str, base: str) -> Iterator[Link]:
    """Read an index's answer, in HTML or JSON (the simple repository API)."""
    if "json" in kind:
        for file in json.loads(text).get("files", []):
            yield Link(file["filename"], urljoin(base, file["url"]), file.get("hashes", {}).get("sha256"))
        return
    page = _Page()
    page.feed(text)
    base = urljoin(base, page.base)
    for target in page.targets:
        yield _link(target, base=base)


def _link(target: str, *, base: str) -> Link:
    """Return the link for a target, whose fragment may carry its sha256."""
    address, fragment = urldefrag(target)
    kind, _, value = fragment.partition("=")
    name = unquote(urlsplit(address).path.rsplit("/", 1)[-1])
    return Link(name, urljoin(base, address), value if kind == "sha256" else None)


class _Page(HTMLParser):
    """Collects a page's links."""

    def __init__(self) -> None:
        super().__init__()
        self.base = ""
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link, or the page's base."""
        target = dict(attrs).get("href") or ""
        if target and tag == "a":
            self.targets.append(target)
        elif target and tag == "base":
            self.base = target


def _local(place: str) -> Path | None:
    """Return the path a place on this host has; None for a URL of a server."""
    if place.startswith("file:"):
        return Path(unquote(urlsplit(place).path))
    return Path(place) if "://" not in place else None


class _Credentials(urllib.request.BaseHandler):
    """Sends credentials to the very server they were given for, and to no other after a redirection."""

    handler_order = 400  # before the handlers that open connections

    def __init__(self, urls: tuple[str, ...]) -> None:
        self.known: dict[tuple[str, str], str] = {}
        for url in urls:
            parts = urlsplit(url)
            given, at, server = parts.netloc.rpartition("@")
            if at:
                user, _, password = given.partition(":")
                token = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
                self.known[parts.scheme, server] = f"Basic {token}"

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        """Add the credentials, where this is their server."""
        parts = urlsplit(request.full_url)
        token = self.known.get((parts.scheme, parts.netloc))
        if token:
            request.add_unredirected_header("Authorization", token)
        return request

    https_request = http_request


def _get(address: str, *, source: Source, limit: int, until: float) -> tuple[bytes, str, str]:
    """Fetch a URL: body, content type, and the URL in the end. OSError if it fails, lasts or is too long."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https"):
        raise OSError(f"{parts.scheme}: is no kind of address that is fetched")
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    opener = urllib.request.build_opener(_Credentials((*source.urls, address)))
    request = urllib.request.Request(bare, headers={"Accept": _ACCEPT, "User-Agent": "sglang-fleet"})  # noqa: S310 - checked above
    body = bytearray()
    with opener.open(request, timeout=max(0.1, min(READ_SECONDS, until - time.monotonic()))) as answer:
        while True:
            chunk = answer.read1(1 << 16)
            if not chunk:
                return bytes(body), answer.headers.get("Content-Type", ""), answer.geturl()
            body += chunk
            if len(body) > limit:
                raise OSError(f"more than {limit} bytes")
            if time.monotonic() >= until:
                raise OSError("not done at the deadline")


def _unreadable(address: str, error: Exception, source: Source) -> HostError:
    """Return the error for a place that cannot be read."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    code = ""
    if isinstance(error, urllib.error.HTTPError):
        code = f"{error.code} "
        error.close()
    elif isinstance(reason, OSError) and reason.strerror:
        reason = reason.strerror
    needed = "make it reachable from this host" if _local(address) is None else "it has to be there on this host"
    return HostError(
        mask(f"cannot read {address}: {code}{reason}", urls=source.urls),
        fix=f"{needed}, or name another place: index_url, find_links or repository",
    )
