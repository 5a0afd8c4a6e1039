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


def test_the_plainest_are_all_said_and_each_once(write: Write) -> None:
    words = ["--api-key=s3cr3t", "--port", "8", "--tp-size=2", "--admin-api-key", "s3cr3t", "--config=x", "--tp=1"]
    words += ["--model=/x"]
    problems = write(overrides={"services.k26.extra_args": words}).problems
    plain, short = problems
    assert plain.message == (
        "has --api-key, --admin-api-key, secrets that every user of the host could read; has --port, --tp-size,"
        " --config, which would contradict args"
    )
    assert plain.fix == (
        "say where they are, in the service's secrets: {api_key: {env: NAME}, admin_api_key: {env: NAME}}; remove it,"
        " and write each argument as a key of args; write port, tp_size in args"
    )
    assert (short.message, short.fix) == ("has --model-path, which would contradict args", "write model_path in args")


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        (["--tp"], "has --tp-size, which would contradict args", "write tp_size in args"),
        (["--tp", "--zzzz"], "has --tp-size, which would contradict args", "write tp_size in args"),
        (["--tp 8 --pp 80"], "holds several words in one", "write each word by itself: --tp, 8, …"),
        (["--zzzz s3cr3t"], "holds several words in one", "write each word by itself: --zzzz, …"),
        (["--zzzz\t12345678"], "holds several words in one", "write each word by itself: --zzzz, …"),
        (
            ["--port 8"],
            "has --port, which would contradict args; holds several words in one",
            "write port in args; write each word by itself: --port, 8",
        ),
    ],
)
def test_words_that_are_not_written_right(wrong: Wrong, words: list[str], message: str, fix: str) -> None:
    problem = wrong(**{EXTRA: words})
    assert (problem.message, problem.fix) == (message, fix)


@pytest.mark.parametrize("word", ['--zzzz={"a": 1}', "a b", "--zzzz=a b"])
def test_a_value_may_hold_blanks(write: Write, word: str) -> None:
    assert not write(overrides={"services.k26.extra_args": ["--zzzz", word]}).problems


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
