"""What is started instead of SGLang is named."""

from __future__ import annotations

import pytest

from sglang_fleet.importing import UnreadableError
from sglang_fleet.importing.engines import engine_of_image
from tests.unit.importing.support import imported


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        ("vllm serve m --api-key poison-5ecret", "vLLM"),
        ("/opt/venv/bin/vllm serve m", "vLLM"),
        ("python3 -m vllm.entrypoints.openai.api_server --model m", "vLLM"),
        ("python -u -m vllm.entrypoints.api_server --model m", "vLLM"),
        ("CUDA_VISIBLE_DEVICES=0 nohup vllm serve m &", "vLLM"),
        ("docker run --gpus all vllm/vllm-openai:v0.9.1 --model m", "vLLM"),
        ("text-generation-launcher --model-id m", "Text Generation Inference"),
        ("docker run ghcr.io/huggingface/text-generation-inference:3 --model-id m", "Text Generation Inference"),
        ("/usr/local/bin/ollama serve", "ollama"),
        ("./llama-server -m x.gguf", "llama.cpp"),
        ("python3 -m llama_cpp.server --model x.gguf", "llama.cpp"),
        ("trtllm-serve m", "TensorRT-LLM"),
        ("tritonserver --model-repository /m", "Triton"),
        ("lmdeploy serve api_server m", "LMDeploy"),
        ("/usr/sbin/nginx -g 'daemon off;'", "nginx"),
    ],
)
def test_another_server_is_named(command: str, engine: str) -> None:
    with pytest.raises(UnreadableError) as error:
        imported(f"#!/bin/sh\nset -e\n{command}\n")
    assert error.value.message == f"this starts {engine}, not SGLang"
    assert error.value.line == 3


@pytest.mark.parametrize("command", ["/usr/sbin/nginx -g 'daemon off;'", "/v/bin/python -m vllm.entrypoints.x --y"])
def test_so_is_a_units(command: str) -> None:
    with pytest.raises(UnreadableError, match=r"^this starts (nginx|vLLM), not SGLang$") as error:
        imported(f"[Service]\nExecStart={command}\n", "x.service")
    assert error.value.line == 2


def test_so_are_those_of_a_compose_file() -> None:
    text = "services:\n  a:\n    image: nginx\n  b:\n    image: vllm/vllm-openai\n    command: [--model, m]\n"
    with pytest.raises(UnreadableError, match=r"^this starts nginx and vLLM, not SGLang$") as error:
        imported(text, "c.yml")
    assert error.value.line == 3


def test_a_program_that_nobody_knows_is_named_by_its_path() -> None:
    with pytest.raises(UnreadableError, match=r"found that the unit starts /usr/bin/frobnicate$"):
        imported("[Service]\nExecStart=/usr/bin/frobnicate --x\n", "x.service")


@pytest.mark.parametrize(
    ("image", "engine"),
    [("vllm/server:1", "vLLM"), ("nvcr.io/nvidia/tritonserver:24.1-py3", "Triton"), ("me/web@sha256:0", ""), ("", "")],
)
def test_an_image_is_told_by_its_name_or_its_owner(image: str, engine: str) -> None:
    assert engine_of_image(image) == engine
