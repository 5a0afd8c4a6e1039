"""Words at the end of the command line."""

import pytest

from sglang_fleet.lint.found import Found
from tests.unit.lint.views import ask, view

KEY = "services.k26.extra_args"


def only(found: list[Found]) -> Found:
    (one,) = found
    assert one.key == KEY
    assert not one.edits
    assert not one.safe
    return one


@pytest.mark.parametrize(
    ("words", "message", "fix"),
    [
        (
            ["--quantisation", "fp8"],
            "--quantisation: no such argument in SGLang 0.5.23",
            "did you mean quantization? If so",
        ),
        (
            ["--max-model-len", "8192"],
            "--max-model-len: no such argument in SGLang 0.5.23: it is vLLM's",
            "in args, use context_length",
        ),
        (["--zzzz"], "--zzzz: no such argument in SGLang 0.5.23", "correct it, or waive this if your build of SGLang"),
        (["--served_model-name2"], "--served_model-name2: no such argument", "did you mean served_model_name?"),
        (["--page_size", "16"], "--page_size: no such argument in SGLang 0.5.23", "write --page-size, with hyphens"),
        (["--page-size", "many"], "--page-size expects a whole number, got 'many'", "correct it"),
        (["--disable-cuda-graph", "s3cr3t"], "a word after --disable-cuda-graph belongs to no argument", "remove it"),
        (["--zqzq-wvwv-token", "s3cr3t"], "--zqzq-wvwv-token: no such argument in SGLang 0.5.23", "correct it"),
        (["--zqzq-wvwv-token=s3cr3t"], "--zqzq-wvwv-token: no such argument in SGLang 0.5.23", "correct it"),
        (["s3cr3t"], "a word at the beginning belongs to no argument", "remove it"),
        (["--disable-c"], "--disable-c may mean any of", "correct it"),
    ],
)
def test_what_is_not_understood(words: list[str], message: str, fix: str) -> None:
    found = only(ask("SGL009", view(extra_args=words)))
    assert found.message.startswith(message)
    assert found.fix.startswith(fix)
    assert "s3cr3t" not in found.message


def test_a_flag_of_another_release() -> None:
    found = only(ask("SGL009", view(extra_args=["--admin-key-x"], version="0.5.99")))
    assert "in SGLang 0.5.23" in found.message


@pytest.mark.parametrize("words", [[], ["--disable-cuda-graph"], ["--page-size=16"], ["--dist-init", "10.0.0.1:5000"]])
def test_what_is_understood(words: list[str]) -> None:
    assert not ask("SGL009", view(extra_args=words))


def test_every_flag_is_named() -> None:
    found = ask("SGL009", view(extra_args=["--one-x", "--two-x"]))
    assert [one.message.split(":")[0] for one in found] == ["--one-x", "--two-x"]


def test_rules_see_them() -> None:
    found = only(ask("SGL201", view(extra_args=["--disable-cuda-graph"])))
    assert found.message.startswith("--disable-cuda-graph: CUDA graphs are off")


def test_args_give_way_to_them() -> None:
    one = view({"page_size": 1}, extra_args=["--page-size", "64", "--log-requests"])
    assert one.number("page_size") == 64  # the last one counts
    assert one.written("log_requests")
    assert one.value("log_requests") is True
    assert one.key("log_requests") == KEY


def test_the_name_of_an_alias_is_its_own_name() -> None:
    one = view(extra_args=["--dist-init", "10.0.0.1:5000"])
    assert one.value("dist_init_addr") == "10.0.0.1:5000"


def test_edits_of_args_are_not_offered_for_them() -> None:
    inside = only(ask("SGL705", view(extra_args=["--log-requests", "--log-requests-level", "3"])))
    assert inside.message.startswith("--log-requests: ")
    (mixed,) = ask("SGL705", view({"log_requests": True}, extra_args=["--log-requests-level", "3"]))
    assert (mixed.key, mixed.edits) == ("services.k26.args.log_requests", ())
    (free,) = ask("SGL705", view(extra_args=["--log-requests"]))
    assert [edit.key for edit in free.edits] == ["services.k26.args.log_requests_level"]
