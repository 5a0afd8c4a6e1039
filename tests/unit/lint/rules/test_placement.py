from typing import Any

import pytest

from tests.unit.lint.cases import assert_found, finds, passes
from tests.unit.lint.views import ask, host, view


@pytest.mark.parametrize(
    ("rule", "key", "words", "settings"),
    [
        finds(
            "SGL104",
            "base_gpu_id",
            args={"tp_size": 2, "base_gpu_id": 4},
            gpus=[4, 5],
            words="GPU 5 of those that gpus names",
        ),
        finds("SGL104", "base_gpu_id", args={"tp_size": 2, "base_gpu_id": 3}, gpus=[0, 1, 2, 3], words="GPU 4"),
        finds("SGL104", "gpu_id_step", args={"tp_size": 4, "gpu_id_step": 2}, gpus=[0, 1, 2, 3], words="GPU 6"),
        finds(
            "SGL104",
            "base_gpu_id",
            args={"tp_size": 1, "dp_size": 4, "base_gpu_id": 1},
            gpus=[0, 1, 2, 3],
            words="GPU 4",
        ),
        finds("SGL104", "gpu_id_step", args={"tp_size": 2, "pp_size": 2, "gpu_id_step": 2}, words="two ranks on GPU 2"),
        finds(
            "SGL104", "base_gpu_id", args={"tp_size": 8, "base_gpu_id": 4}, nodes=2, gpus=[0, 1, 2, 3], words="GPU 7"
        ),
        finds("SGL104", "base_gpu_id", args={"tp_size": 8, "base_gpu_id": 4, "nnodes": 2}, gpus=[0, 1], words="GPU 7"),
        finds("SGL104", "base_gpu_id", args={"base_gpu_id": -1}, version="0.5.9", words="0 or more"),
        finds("SGL104", "gpu_id_step", args={"gpu_id_step": 0}, words="1 or more"),
        finds(
            "SGL116", "base_gpu_id", args={"tp_size": 4, "base_gpu_id": 6}, state=host(count=8), words="the host has 8"
        ),
    ],
)
def test_is_found(rule: str, key: str, words: str, settings: dict[str, Any]) -> None:
    assert_found(rule, key, words, settings)


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        passes("SGL104", args={"tp_size": 2, "base_gpu_id": 2}, gpus=[0, 1, 2, 3]),
        passes("SGL104", args={"tp_size": 2, "gpu_id_step": 2}, gpus=[0, 1, 2]),
        passes("SGL104", args={"tp_size": 2, "base_gpu_id": 4}),
        passes("SGL104", args={"tp_size": 8}, gpus=[0, 1, 2, 3, 4, 5, 6, 7]),
        passes("SGL104", args={"tp_size": 8, "base_gpu_id": 4}, nodes=2, gpus=[0, 1, 2, 3, 4, 5, 6, 7]),
        passes("SGL104", args={"tp_size": 4, "pp_size": 4, "base_gpu_id": 0}, nodes=8, gpus=[0, 1]),
        passes("SGL104", args={"tp_size": 2, "pp_size": 2, "gpu_id_step": 1}),
        passes("SGL116", args={"tp_size": 4, "base_gpu_id": 4}, state=host(count=8)),
        passes("SGL116", args={"tp_size": 4, "base_gpu_id": 6}),
        passes("SGL116", args={"tp_size": 1, "base_gpu_id": 6}, gpus=[0], state=host(count=4)),
        passes("SGL116", args={"tp_size": 16}, state=host(count=8)),
    ],
)
def test_is_not_found(rule: str, settings: dict[str, Any]) -> None:
    assert not ask(rule, view(**settings))
