import hashlib
import json
from pathlib import Path

import pytest

from sglang_fleet.host.activation.layout import Layout
from sglang_fleet.host.activation.releases import (
    KEPT_PROVEN,
    Proven,
    UnusableError,
    add_proven,
    check_ground,
    load,
    parse_environment,
    parse_secret_arguments,
    read_proven,
)
from sglang_fleet.host.errors import HostError
from sglang_fleet.systemd_text import environment_line


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path, "k26")
    folder = layout.release("r1")
    folder.mkdir(parents=True)
    texts = {"unit": "[Service]\n", "secrets.yaml": 'api-key: "hush"\n', "environment.secret": "HF_TOKEN=mum\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)
    files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    (folder / "release.json").write_text(json.dumps({"service": "k26", "release": "r1", "files": files}))
    return layout


def rewrite(layout: Layout, **more: object) -> None:
    path = layout.release("r1") / "release.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


def test_a_whole_release_is_read_with_its_secrets(layout: Layout) -> None:
    release = load(layout, "r1")
    assert release.unit == b"[Service]\n"
    assert release.secrets == {"api-key": "hush", "HF_TOKEN": "mum"}


def test_f31_half_or_damaged_releases_are_unusable(layout: Layout) -> None:
    folder = layout.release("r1")
    with pytest.raises(UnusableError, match="not complete"):
        load(layout, "r2")
    (folder / "unit").write_text("x")
    with pytest.raises(UnusableError, match="not what was staged"):
        load(layout, "r1")
    (folder / "unit").unlink()
    with pytest.raises(UnusableError, match="unit: No such file"):
        load(layout, "r1")
    (folder / "release.json").write_text("{")
    with pytest.raises(UnusableError, match="damaged"):
        load(layout, "r1")
    (folder / "release.json").write_text("[]")
    with pytest.raises(UnusableError, match="damaged"):
        load(layout, "r1")


def test_a_release_of_another_service_is_unusable(layout: Layout) -> None:
    rewrite(layout, service="other")
    with pytest.raises(UnusableError, match="says that it is other/r1"):
        load(layout, "r1")


def test_the_ground_a_release_stands_on(layout: Layout, tmp_path: Path) -> None:
    venv, cuda = tmp_path / "venv", tmp_path / "cuda"
    rewrite(layout, venv=str(venv), cuda_home=str(cuda))
    venv.mkdir()
    with pytest.raises(UnusableError, match=r"venv .* never finished"):
        check_ground(load(layout, "r1"))
    (venv / ".sglang-fleet.json").write_text("{}")
    with pytest.raises(UnusableError, match="CUDA home"):
        check_ground(load(layout, "r1"))
    cuda.mkdir()
    check_ground(load(layout, "r1"))


SECRETS = ["plain", 'with "quotes" and \\', "a: b # c", "ümlaut", "'", "$HOME `x`"]


@pytest.mark.parametrize("value", SECRETS)
def test_secret_values_are_read_as_they_were_written(value: str) -> None:
    assert parse_secret_arguments(f"api-key: {json.dumps(value)}\n") == {"api-key": value}
    assert parse_environment(environment_line("TOKEN", value) + "\n") == {"TOKEN": value}


def test_other_ways_to_write_a_secret() -> None:
    assert parse_secret_arguments("a: plain\nb: 'it''s'\n\nc:\n") == {"a": "plain", "b": "it's"}
    assert parse_environment("# no\nA='x y'\nB=\n") == {"A": "x y", "B": ""}


def test_proven_entries_come_back_in_order_and_are_bounded(layout: Layout) -> None:
    assert read_proven(layout.proven) == []
    for number in range(KEPT_PROVEN + 2):
        add_proven(layout.proven, Proven(f"r{number}", "t", "a"))
    entries = read_proven(layout.proven)
    assert len(entries) == KEPT_PROVEN
    assert (entries[0].release, entries[-1].release) == ("r2", f"r{KEPT_PROVEN + 1}")


def test_what_is_proven_once_more_is_one_entry_that_names_its_last_start(layout: Layout) -> None:
    for entry in (Proven("r1", "t1", "a1", "i1"), Proven("r2", "t2", "a2", "i2"), Proven("r2", "t3", "a3", "i3")):
        add_proven(layout.proven, entry)
    assert read_proven(layout.proven) == [Proven("r1", "t1", "a1", "i1"), Proven("r2", "t2", "a2", "i3")]


def test_entries_of_older_versions_name_no_start(layout: Layout) -> None:
    layout.proven.parent.mkdir(parents=True, exist_ok=True)
    layout.proven.write_text('{"releases": [{"release": "r1", "proven_at": "t", "activation": "a"}]}')
    assert read_proven(layout.proven) == [Proven("r1", "t", "a", "")]


@pytest.mark.parametrize("text", ["{", "[]", '{"releases": [{}]}'])
def test_a_list_that_cannot_be_read_is_not_empty(layout: Layout, text: str) -> None:
    layout.proven.write_text(text)
    with pytest.raises(HostError, match=r"proven\.json cannot be read"):
        read_proven(layout.proven)
