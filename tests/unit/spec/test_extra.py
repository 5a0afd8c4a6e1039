"""What extra_args says of arguments that belong elsewhere."""

from collections.abc import Callable

import pytest

from sglang_fleet.problems import Problem
from sglang_fleet.spec import Loaded

Write = Callable[..., Loaded]
Wrong = Callable[..., Problem]
EXTRA = "services__k26__extra_args"


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        (["--tp", "8"], "has --tp-size, which would contradict args", "write tp_size in args"),
        (["--model", "/x"], "has --model-path, which would contradict args", "write model_path in args"),
        (["--tensor-parallel-size=8"], "has --tp-size, which would contradict args", "write tp_size in args"),
        (["--serve", "x"], "has --served-model-name, which would contradict args", "write served_model_name in args"),
        (["--is-embed"], "has --is-embedding, which would contradict args", "write is_embedding in args"),
        (["--is-embedding"], "has --is-embedding, which would contradict args", "write is_embedding in args"),
        (["--conf", "/x"], "has --config, which would contradict args", "remove it, and write each argument as a key"),
        (["--api-k", "s3cr3t"], "has --api-key, a secret that every user of the host could read", "say where it is"),
    ],
)
def test_an_argument_that_belongs_in_args(wrong: Wrong, words: list[str], message: str, fix: str) -> None:
    problem = wrong(**{EXTRA: words})
    assert (problem.key, problem.message) == ("services.k26.extra_args", message)
    assert problem.fix.startswith(fix)
    assert "s3cr3t" not in f"{problem}"


@pytest.mark.parametrize("words", [[], ["--zzzz", "1"], ["--log-requests"], ["--", "--tp"], ["/root"]])
def test_anything_else_is_left_to_lint(write: Write, words: list[str]) -> None:
    assert not write(overrides={"services.k26.extra_args": words}).problems


def test_each_is_said_once(write: Write) -> None:
    problems = write(overrides={"services.k26.extra_args": ["--tp=1", "--tp=2", "--model=/x"]}).problems
    assert [problem.message.split(",")[0] for problem in problems] == ["has --tp-size", "has --model-path"]


@pytest.mark.parametrize("word", ["--reasoning-parser=qwen3", "--reasoning-p=qwen3"])
def test_an_argument_that_stands_in_both(write: Write, word: str) -> None:
    overrides = {"services.k26.args.reasoning_parser": "kimi_k2", "services.k26.extra_args": [word]}
    (problem,) = write(overrides=overrides).problems
    assert problem.message == "has --reasoning-parser, which args has as well: SGLang takes the last, which is this one"
    assert problem.fix == "keep reasoning_parser in args, remove it here"


def test_another_name_in_args_is_the_same_argument(write: Write) -> None:
    words = ["--dist-init-addr", "10.0.0.1:5000"]
    overrides = {"services.k26.args.nccl_init_addr": "10.0.0.1:5000", "services.k26.extra_args": words}
    (problem,) = write(overrides=overrides).problems
    assert problem.fix == "keep nccl_init_addr in args, remove it here"


@pytest.mark.parametrize(("word", "count"), [("--tensor-parallel-size=2", 1), ("--tensor-par=2", 0)])
def test_a_shortened_name_may_be_another_one_in_an_unknown_release(write: Write, word: str, count: int) -> None:
    loaded = write(overrides={"sglang.version": "0.5.99", "services.k26.extra_args": [word]})
    assert len(loaded.problems) == count


def test_the_old_release_knows_the_argument_by_another_name(write: Write) -> None:
    (problem,) = write(overrides={"sglang.version": "0.5.9", "services.k26.extra_args": ["--tp", "2"]}).problems
    assert problem.fix == "write tp_size in args"
