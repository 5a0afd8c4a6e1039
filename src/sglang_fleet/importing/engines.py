"""Other servers than SGLang, by how they are started: what to say when a source starts one of them."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from sglang_fleet.importing.basis import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sglang_fleet.importing.basis import Word

_PROGRAMS = {
    "vllm": "vLLM",
    "text-generation-launcher": "Text Generation Inference",
    "text-generation-server": "Text Generation Inference",
    "text-embeddings-router": "Text Embeddings Inference",
    "ollama": "ollama",
    "llama-server": "llama.cpp",
    "llama-cli": "llama.cpp",
    "llamafile": "llama.cpp",
    "trtllm-serve": "TensorRT-LLM",
    "tritonserver": "Triton",
    "lmdeploy": "LMDeploy",
    "mlc_llm": "MLC LLM",
    "aphrodite": "Aphrodite",
    "nginx": "nginx",
    "caddy": "Caddy",
    "haproxy": "HAProxy",
}
_MODULES = {
    "vllm": "vLLM",
    "text_generation_server": "Text Generation Inference",
    "llama_cpp": "llama.cpp",
    "tensorrt_llm": "TensorRT-LLM",
    "lmdeploy": "LMDeploy",
    "mlc_llm": "MLC LLM",
    "aphrodite": "Aphrodite",
    "sglang_router": "SGLang's router",
}
_IMAGES = {
    "vllm": "vLLM",
    "text-generation-inference": "Text Generation Inference",
    "text-embeddings-inference": "Text Embeddings Inference",
    "ollama": "ollama",
    "llama.cpp": "llama.cpp",
    "tensorrt-llm": "TensorRT-LLM",
    "tritonserver": "Triton",
    "lmdeploy": "LMDeploy",
    "nginx": "nginx",
    "caddy": "Caddy",
    "haproxy": "HAProxy",
}


def engine_of(words: Sequence[Word]) -> str:
    """The server that a command starts, of those that are known by name; empty for any other."""
    texts = [plain(word.text) for word in words]
    if not texts:
        return ""
    program = posixpath.basename(texts[0])
    if program in _PROGRAMS:
        return _PROGRAMS[program]
    if re.fullmatch(r"(?:python|pypy)[0-9.]*", program) and "-m" in texts[:-1]:
        return _MODULES.get(texts[texts.index("-m") + 1].partition(".")[0], "")
    return ""


def is_sglang(image: str) -> bool:
    """Whether an image is one of SGLang, by its name."""
    return "sglang" in image.partition("@")[0].rpartition("/")[2].partition(":")[0].lower()


def engine_of_image(image: str) -> str:
    """The server that an image is named for; empty for any other."""
    repository = image.partition("@")[0].rpartition("/")[2].partition(":")[0].lower()
    owners = image.lower().split("/")[:-1]
    found = next((name for name in _IMAGES if name in repository), "")
    return _IMAGES.get(found) or next((_IMAGES[owner] for owner in owners if owner in _IMAGES), "")
