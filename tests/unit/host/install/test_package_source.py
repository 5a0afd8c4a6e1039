"""Where packages come from: indexes, folders, and the host's own settings."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sglang_fleet.host.errors import HostError
from sglang_fleet.host.install import package_source
from sglang_fleet.host.install.package_source import Link, Source
from tests.unit.host.stand_ins import Site, site


@pytest.fixture(name="web")
def serve() -> Iterator[Site]:
    with site() as shown:
        yield shown


@pytest.fixture(autouse=True)
def plain_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "PIP_CONFIG_FILE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def offers(source: Source) -> list[Link]:
    return list(package_source.offers(source, "uv", until=time.monotonic() + 20))


def test_an_index_in_html(web: Site) -> None:
    page = '<html><a href="../../files/uv-1-py3-none-any.whl#sha256=ab" data-x>uv</a><a>no</a></html>'
    web.pages["/simple/uv/"] = ("text/html", page.encode())
    (link,) = offers(Source(f"{web.url}/simple/", ()))
    assert link == Link("uv-1-py3-none-any.whl", f"{web.url}/files/uv-1-py3-none-any.whl", "ab")


def test_an_index_in_json(web: Site) -> None:
    file = {"filename": "uv-1-py3-none-any.whl", "url": "/files/uv.whl", "hashes": {"sha256": "cd"}}
    web.pages["/simple/uv/"] = ("application/vnd.pypi.simple.v1+json", json.dumps({"files": [file]}).encode())
    assert offers(Source(f"{web.url}/simple", ())) == [Link("uv-1-py3-none-any.whl", f"{web.url}/files/uv.whl", "cd")]


def test_folders_and_files_come_first(web: Site, tmp_path: Path) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "uv-1.whl").write_bytes(b"")
    web.pages["/simple/uv/"] = ("text/html", b'<a href="uv-3.whl">')
    places = (str(tmp_path / "wheels"), f"{web.url}/uv-2.whl#sha256=ef")
    found = offers(Source(f"{web.url}/simple", places))
    assert [(link.name, link.sha256) for link in found] == [("uv-1.whl", None), ("uv-2.whl", "ef"), ("uv-3.whl", None)]


def test_a_folder_by_its_url(tmp_path: Path) -> None:
    (tmp_path / "uv-1.whl").write_bytes(b"w")
    (link,) = offers(Source(None, (tmp_path.as_uri(),)))
    assert package_source.download(link.address, source=Source(None, ()), limit=9, until=time.monotonic() + 9) == b"w"


def test_credentials_go_to_their_server_and_not_along_a_redirection(web: Site) -> None:
    with site() as other:
        web.pages["/simple/uv/"] = ("text/html", b'<a href="/files/uv.whl">')
        web.redirects["/files/uv.whl"] = f"{other.url}/uv.whl"
        other.pages["/uv.whl"] = ("application/zip", b"wheel")
        source = Source(web.url.replace("://", "://user:p%40ss@") + "/simple", ())
        (link,) = offers(source)
        body = package_source.download(link.address, source=source, limit=99, until=time.monotonic() + 20)
    assert body == b"wheel"
    assert web.asked == [
        ("/simple/uv/", "Basic dXNlcjpwQHNz"),
        ("/files/uv.whl", "Basic dXNlcjpwQHNz"),
    ]
    assert other.asked == [("/uv.whl", None)]


def test_what_cannot_be_read_is_told_without_credentials(web: Site) -> None:
    place = web.url.replace("://", "://user:poison-3@") + "/simple"
    with pytest.raises(HostError, match=r"cannot read .*: 404") as caught:
        offers(Source(place, ()))
    assert "poison-3" not in caught.value.what


@pytest.mark.parametrize("place", ["ftp://127.0.0.1/x", "http://127.0.0.1:1/x", "/no/such/file", "http://[/"])
def test_no_answer_is_a_host_error(place: str) -> None:
    with pytest.raises(HostError, match="cannot read"):
        package_source.download(place, source=Source(None, ()), limit=9, until=time.monotonic() + 5)


@pytest.mark.parametrize(("made", "why"), [("", "No such file or directory"), ("file", "Not a directory")])
def test_a_folder_that_is_missing_or_none_is_told(tmp_path: Path, made: str, why: str) -> None:
    place = tmp_path / "wheels"
    if made:
        place.write_bytes(b"")
    with pytest.raises(HostError) as caught:
        offers(Source(None, (str(place),)))
    assert caught.value.what == f"cannot read {place}: {why}"
    assert "on this host" in caught.value.fix


def test_too_much_is_refused(web: Site) -> None:
    web.pages["/big"] = ("x/y", b"x" * 100)
    with pytest.raises(HostError, match="more than 10 bytes"):
        package_source.download(f"{web.url}/big", source=Source(None, ()), limit=10, until=time.monotonic() + 20)


def test_the_request_names_the_index() -> None:
    assert package_source.source_of({"index_url": "http://i/", "find_links": ["/w"]}) == Source("http://i/", ("/w",))


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"])
def test_else_the_hosts_variables_do(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://variable/")
    assert package_source.source_of({"index_url": None}).index_url == "http://variable/"


def test_else_the_hosts_pip_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text("[global]\nindex-url = http://file/100%/\n")
    assert package_source.host_index() == "http://file/100%/"
    (tmp_path / "other.conf").write_text("[global]\nindex-url = http://nearer/\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "other.conf"))
    assert package_source.host_index() == "http://nearer/"


def test_settings_that_are_broken_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.conf").write_bytes(b"index-url = x\n\xff")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "broken.conf"))
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip/pip.conf").write_text("[global]\nindex-url = http://next/\n")
    assert package_source.host_index() == "http://next/"
