"""Which release a source says it runs."""

from __future__ import annotations

import pytest

from sglang_fleet.catalog import versions
from sglang_fleet.importing.releases import release_in
from tests.unit.importing.support import imported, notes

SERVER = "python3 -m sglang.launch_server --model-path m"
DOCKER = "docker run --gpus all {0} " + SERVER
COMPOSE = "services:\n  a:\n    image: {0}\n    command: " + SERVER + "\n"
QUADLET = "[Container]\nImage={0}\nExec=" + SERVER + "\n"


@pytest.mark.parametrize(
    ("text", "source"), [(DOCKER, "run.sh"), (COMPOSE, "c.yml"), (QUADLET, "a.container")], ids=["run", "yml", "unit"]
)
def test_an_images_tag_says_the_release(text: str, source: str) -> None:
    found = imported(text.format("lmsysorg/sglang:v0.5.9-cu126"), source)
    assert found.settings["sglang"] == {"version": "0.5.9", "requirements": "locks/sglang-0.5.9-cu129.txt"}
    assert found.settings["cuda"]["version"] == "12.9"
    assert (
        "image lmsysorg/sglang:v0.5.9-cu126: the product installs SGLang on the host itself; read as SGLang 0.5.9"
        in notes(found)
    )


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("lmsysorg/sglang:v0.5.9-cu126", "0.5.9"),
        ("lmsysorg/sglang:v0.5.6.post2-cu129-amd64", "0.5.6.post2"),
        ("registry:5000/x/sglang:0.5.22", "0.5.22"),
        ("lmsysorg/sglang:v0.5.9@sha256:abcdef", "0.5.9"),
        ("lmsysorg/sglang:v0.5.8rc1", "0.5.8rc1"),
        ("me/sglang-server:1.0.0", ""),
        ("lmsysorg/sglang:latest", ""),
        ("lmsysorg/sglang", ""),
        ("vllm/vllm-openai:v0.9.1", ""),
        ("sglang:5000/other:v0.5.9", ""),
    ],
)
def test_the_release_of_an_image(image: str, release: str) -> None:
    assert release_in(image) == release


@pytest.mark.parametrize(
    "line",
    [
        "pip install sglang==0.5.9",
        'uv pip install --upgrade "sglang[all]==0.5.9" other',
        "python3 -m pip install sglang[all]==0.5.9",
        "uv pip install --system 'sglang==0.5.9'",
        "V=0.5.9; pip install sglang==$V",
    ],
)
def test_what_a_script_installs_says_the_release(line: str) -> None:
    found = imported(f"#!/bin/sh\n{line}\n{SERVER}\n")
    assert found.settings["sglang"]["version"] == "0.5.9"
    assert "2: sglang==0.5.9 is installed by the product; read as SGLang 0.5.9" in notes(found).replace("[all]", "")


def test_what_is_run_with_a_release_says_it_too() -> None:
    found = imported(f"uv run --with sglang==0.5.9 {SERVER}\n")
    assert found.settings["sglang"]["version"] == "0.5.9"


def test_an_image_counts_more_than_what_a_script_installs_and_an_option_more_than_both() -> None:
    text = f"pip install sglang==0.5.10\n{DOCKER.format('lmsysorg/sglang:v0.5.9')}\n"
    assert imported(text).settings["sglang"]["version"] == "0.5.9"
    assert imported(text, version="0.5.23").settings["sglang"]["version"] == "0.5.23"


def test_flags_that_the_images_release_lacks_are_named_and_the_release_is_kept() -> None:
    found = imported(DOCKER.format("lmsysorg/sglang:v0.5.5") + " --cuda-graph-config '{}'")
    assert found.settings["sglang"]["version"] == "0.5.5"
    assert "1: --cuda-graph-config is not of SGLang 0.5.5, which lmsysorg/sglang:v0.5.5 is" in notes(found)


@pytest.mark.parametrize(("release", "nearest"), [("0.5.4", "0.5.5"), ("0.5.99", versions()[-1])])
def test_a_release_without_a_catalogue_is_kept_and_read_as_the_nearest(release: str, nearest: str) -> None:
    found = imported(DOCKER.format(f"lmsysorg/sglang:v{release}"))
    assert found.settings["sglang"]["version"] == release
    assert f"its flags are not known here: read as those of {nearest}" in notes(found)


@pytest.mark.parametrize("tag", [":latest", ":dev", "", ":nightly-dev-cu13"])
def test_an_image_that_names_no_release_is_said_and_the_newest_is_taken(tag: str) -> None:
    found = imported(DOCKER.format(f"lmsysorg/sglang{tag}"))
    assert found.settings["sglang"]["version"] == versions()[-1]
    assert f"it names no release: read as SGLang {versions()[-1]}, the newest with all" in notes(found)


def test_two_images_of_different_releases_cannot_share_a_file() -> None:
    one = "  {0}:\n    image: lmsysorg/sglang:v{1}\n    command: " + SERVER + " --port 3000{2}\n"
    found = imported("services:\n" + one.format("a", "0.5.9", 1) + one.format("b", "0.5.10", 2), "c.yml")
    assert found.settings["sglang"]["version"] == "0.5.10"
    assert "host itself; a host runs one release: read as 0.5.10, not 0.5.9" in notes(found)


def test_a_lock_file_that_is_not_shipped_comes_with_the_command_that_makes_it() -> None:
    said = notes(imported(DOCKER.format("lmsysorg/sglang:v0.5.9")))
    assert "locks/sglang-0.5.9-cu129.txt has to be made" in said
    assert "uv pip compile --generate-hashes" in said
    assert "has to be made" not in notes(imported(SERVER))
