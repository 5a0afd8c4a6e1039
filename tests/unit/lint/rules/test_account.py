"""What the account may not do."""

from typing import Any

import pytest

from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, view

ROOTS = {"model_path": "/root/models/k26"}
ANNAS = {"model_path": "/home/anna/k26"}


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds("SGL710", "model_path", args=ROOTS, words="the home of root, which sglang may not enter"),
        finds("SGL710", "model_path", args=ANNAS, words="the home of anna"),
        finds("SGL710", "model_path", args=ANNAS, user="ben", words="which ben mostly may not enter"),
        finds("SGL710", "chat_template", args={"chat_template": "/root/kimi.jinja"}),
        finds("SGL710", "lora_paths", args={"lora_paths": ["a=/srv/a", "b=/home/anna/b"]}),
        finds("SGL710", "working_directory", working_directory="/root"),
        finds("SGL710", "environment.HF_HOME", environment={"HF_HOME": "/root/.cache/huggingface"}),
        finds("SGL711", "port", args={"port": 80}, words="80 is below 1024"),
        finds("SGL711", "port", args={"port": 1023}),
        finds("SGL711", "grpc_port", args={"grpc_port": 443}),
    ],
)  # fmt: skip
def test_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    if "." in key or key == "working_directory":
        (found,) = ask(rule, view(**settings))
        assert found.key == f"services.k26.{key}"
    else:
        assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL710"),
        passes("SGL710", args=ROOTS, user="root"),
        passes("SGL710", args=ANNAS, user="anna"),
        passes("SGL710", args=ANNAS, user="root"),
        passes("SGL710", args={"model_path": "/rootfs/models"}),
        passes("SGL710", args={"model_path": "/srv/home/anna/k26"}),
        passes("SGL710", args={"served_model_name": "/root/models/k26"}),  # a name, whatever it looks like
        passes("SGL710", args={"fastapi_root_path": "/root"}),  # of a URL
        passes("SGL710", environment={"OTHER": "/root/x"}),
        passes("SGL711"),
        passes("SGL711", args={"port": 1024}),
        passes("SGL711", args={"port": 80}, user="root"),
    ],
)  # fmt: skip
def test_passes(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
