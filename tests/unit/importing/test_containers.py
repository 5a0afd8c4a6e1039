"""`docker run` and the like: the server inside, and what of the container a host needs."""

from __future__ import annotations

import pytest

from sglang_fleet.importing.basis import Notes, Surroundings, Word
from sglang_fleet.importing.containers import device_ids, read_run
from tests.unit.importing.support import argv, imported, notes, only

SERVER = "python3 -m sglang.launch_server --model-path /models/K2"


@pytest.mark.parametrize(
    "options",
    [
        "",
        "--rm -it --gpus all --shm-size 32g --ipc=host -p 1:1",
        "-itd --rm --name sglang -v /a:/b:ro -e A=1 --network host --privileged",
        "-dp 30000:30000 -v/a:/b -eA=1 --restart=always --ulimit memlock=-1",
        "--runtime nvidia --env-file .env --mount type=bind,src=/a,dst=/b --entrypoint ''",
    ],
)
@pytest.mark.parametrize("engine", ["docker", "sudo docker", "/usr/bin/podman", "nerdctl"])
def test_the_server_inside_is_found_behind_any_options(engine: str, options: str) -> None:
    assert argv(imported(f"{engine} run {options} lmsysorg/sglang:v0.5.5 {SERVER} --tp-size 2")) == (
        "--model-path /models/K2 --tp-size 2"
    )


def test_a_shell_inside_is_read_too() -> None:
    text = f'docker run --entrypoint bash img -lc "export A=1 && {SERVER}"'
    found = imported(text)
    assert argv(found) == "--model-path /models/K2"
    assert only(found)["environment"] == {"A": "1"}


def test_an_image_that_starts_sglang_itself_is_believed() -> None:
    found = imported("docker run me/sglang-server --model-path /m --port 1")
    assert argv(found) == "--model-path /m --port 1"
    assert "the image's own command was taken for" in notes(found)


def test_paths_of_the_container_become_those_of_the_host() -> None:
    volumes = "-v /data/models:/models:ro -v /data/models/x:/models/x"
    found = imported(f"docker run {volumes} img {SERVER} --tokenizer-path /models/x/t --chat-template /app/t.jinja")
    assert argv(found) == "--model-path /data/models/K2 --tokenizer-path /data/models/x/t --chat-template /app/t.jinja"
    assert "/models/K2 of the container is /data/models/K2 on the host" in notes(found)
    assert "--chat-template /app/t.jinja: a path of the container that no known volume holds" in notes(found)


def test_a_volume_that_only_the_host_knows_is_named() -> None:
    found = imported(f"docker run -v ~/models:/models -v cache:/c img {SERVER}")
    assert argv(found) == "--model-path /models/K2"
    assert "volume ~/models on /models: where it is on the host is not known here" in notes(found)


def test_only_the_containers_own_variables_reach_the_server() -> None:
    found = imported(f"export A=1 B=2 C=3\ndocker run -e A -e D=4 --env 'E=a b' -e F img {SERVER}")
    assert only(found)["environment"] == {"A": "1", "D": "4", "E": "a b"}
    assert "F: $F is only known on the host: left out" in notes(found)


@pytest.mark.parametrize(
    ("options", "gpus"),
    [
        ("--gpus all", None),
        ("""--gpus '"device=2,3"'""", [2, 3]),
        ("--gpus device=1", [1]),
        ("--gpus 2", None),
        ("--gpus device=GPU-1234", None),
        ("--device nvidia.com/gpu=4 --device nvidia.com/gpu=5", [4, 5]),
        ("--device nvidia.com/gpu=all", None),
        ("-e NVIDIA_VISIBLE_DEVICES=1,2", [1, 2]),
        ("""--gpus '"device=4,5"' -e CUDA_VISIBLE_DEVICES=1""", [5]),
    ],
)
def test_the_gpus_of_the_container(options: str, gpus: list[int] | None) -> None:
    assert only(imported(f"docker run {options} img {SERVER}")).get("gpus") == gpus


def test_what_a_host_does_not_need_is_named_once() -> None:
    found = notes(imported(f"docker run --ipc=host --shm-size 1g --cap-add X --cap-add Y img:1 {SERVER}"))
    assert "1: the container's --ipc, --shm-size, --cap-add: not carried over" in found
    assert "1: image img:1: the product installs SGLang on the host itself" in found


def test_another_port_for_clients_is_named() -> None:
    assert "clients reached the server on port 8080" in notes(imported(f"docker run -p 8080:30000 img {SERVER}"))
    assert "clients reached" not in notes(imported(f"docker run -p 127.0.0.1:30000:30000 img {SERVER}"))


def test_words_of_a_run_that_ends_early_are_no_error() -> None:
    rest, _ = read_run([Word("docker", 1), Word("run", 1), Word("-e", 1)], Surroundings(), Notes())
    assert rest == []


@pytest.mark.parametrize(("text", "ids"), [('"device=0,1"', (0, 1)), ("3", (3,)), ("GPU-1", None), ("device=", None)])
def test_device_ids(text: str, ids: tuple[int, ...] | None) -> None:
    assert device_ids(text) == ids


def test_paths_in_variables_become_those_of_the_host() -> None:
    found = imported(f"docker run -v /data:/cache -e HF_HOME=/cache/hf -e X_DIR=/app img {SERVER}")
    assert only(found)["environment"] == {"HF_HOME": "/data/hf", "X_DIR": "/app"}
    assert "X_DIR /app: a path of the container that no known volume holds" in notes(found)


def test_the_containers_name_is_the_services() -> None:
    assert list(imported(f"docker run --name qwen img {SERVER}").settings["services"]) == ["qwen"]
    assert list(imported(f"docker run --name=Qwen_3 img {SERVER}").settings["services"]) == ["qwen-3"]


def test_a_units_name_counts_more_than_its_containers() -> None:
    text = f"[Service]\nExecStart=/usr/bin/docker run --name qwen img {SERVER}\n"
    assert list(imported(text, "sglang-k26.service").settings["services"]) == ["k26"]


def test_notes_about_a_container_stand_at_their_own_lines() -> None:
    said = notes(imported(f"docker run \\\n --ipc host \\\n -v c:/c \\\n -w /app \\\n img:1 {SERVER}"))
    assert "2: the container's --ipc" in said
    assert "3: volume c on /c" in said
    assert "4: working directory /app" in said
    assert "5: image img:1" in said
