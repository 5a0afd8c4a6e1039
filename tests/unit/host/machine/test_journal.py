import base64
import json
import shlex
import subprocess
from urllib.parse import quote, quote_plus

import pytest

from sglang_fleet.host.machine import journal
from sglang_fleet.host.machine.journal import Masks, cause, exit_of, last_lines
from sglang_fleet.systemd_text import environment_line, exec_word


def test_masks_hide_a_value_also_escaped() -> None:
    value = 'a"b\\c'
    masks = Masks([value, ""])
    for text in (value, json.dumps(value), repr(value), f"x{value}y"):
        assert "b" not in masks.hide(text).replace("•••", "")
    assert masks.hide("nothing here") == "nothing here"


def test_masks_hide_a_value_however_it_is_written() -> None:
    value = "q7 a\"b\\c$d%e'é/+q7"
    content = value.encode()
    written = [
        *(json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value), shlex.quote(value)),
        *(quote(value), quote(value, safe=""), quote_plus(value)),
        *(exec_word(value), exec_word(f"--x={value}"), exec_word(json.dumps(value)), environment_line("X", value)),
    ]
    masks = Masks([value])
    for text in written:
        assert "q7" not in masks.hide(f"see {text} end")
    for encoded in (base64.b64encode(content), base64.urlsafe_b64encode(content)):
        assert encoded.decode().rstrip("=") not in masks.hide(encoded.decode())


@pytest.mark.parametrize("value", ["a\0b", "a\ud800b", "x", " padded "])
def test_masks_take_any_value(value: str) -> None:
    assert Masks([value]).hide(f"<{value}>") == "<•••>"


def test_a_longer_secret_goes_before_one_inside_it() -> None:
    assert Masks(["abc", "abcdef"]).hide("abcdef abc") == "••• •••"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            ["usage: x", "launch_server.py: error: unrecognized arguments: --x", "k26.service: Failed with result"],
            "unrecognized arguments: --x",
        ),
        (["Traceback (most recent call last):", "ValueError: no such choice", "bye"], "ValueError: no such choice"),
        (["loading", "last words", "k26.service: Deactivated successfully.", "Stopped K2.6"], "last words"),
        (["last words", 'INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 500 Internal Server Error'], "last words"),
        (
            [
                "last words",
                "INFO:     Uvicorn running on http://0.0.0.0:30001",
                "[2026] The server is fired up and ready to roll!",
            ],
            "last words",
        ),
        (
            [
                "k26.service: Failed at step EXEC spawning /x: No such file or directory",
                "Failed to start k26 - SGLang.",
            ],
            "Failed at step EXEC spawning /x: No such file or directory",
        ),
        (
            [
                "[2026] Subprocess scheduler_1 (pid=8660) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
                "RuntimeError: Connection closed by peer",
            ],
            "its process scheduler_1 was killed by signal 9, as when the host runs out of memory",
        ),
        (
            ["RuntimeError: Rank 0 scheduler died during initialization (exit code: -11). If exit code is -9, ..."],
            "its process Rank 0 scheduler was killed by signal 11",
        ),
        (["Subprocess scheduler_1 (pid=8) crashed with exit code 1.", "ValueError: no"], "ValueError: no"),
        ([], ""),
    ],
)
def test_the_cause_is_the_servers_own_line(lines: list[str], says: str) -> None:
    assert cause(lines) == says


@pytest.mark.parametrize(
    ("before", "says"),
    [([], ""), (["last words"], "last words"), (["ValueError: no"], "ValueError: no")],
)
@pytest.mark.parametrize(
    "warning",
    [
        ["/x/launch_server.py:121: UserWarning: no error, but old", "  warnings.warn("],
        ["<frozen importlib._bootstrap>:241: DeprecationWarning: killed soon"],
        ["/x/a.py:1: FutureWarning: old", "  return torch.load(denied)"],
        ["/x/a.py:1: UserWarning: one", "/x/b.py:2: Warning: two", "  warnings.warn(", "  warnings.warn("],
    ],
)
def test_a_warning_of_pythons_is_no_cause(warning: list[str], before: list[str], says: str) -> None:
    assert cause([*before, *warning]) == says
    assert cause(["k26.service: Failed at step EXEC spawning /x: no", *before, *warning]) == (
        says or "Failed at step EXEC spawning /x: no"
    )


def test_one_that_a_signal_has_ended_need_not_have_said_why() -> None:
    idle = [
        "[2026-11-30 05:41:44] Prefill batch, #new-seq: 1",
        "Warning: Decoder field is not found in tokenizer.json.",
    ]
    assert cause(idle, by_signal=True) == ""
    assert cause(idle) == idle[0]
    assert cause([*idle, "ValueError: no", "bye"], by_signal=True) == "ValueError: no"


def test_lines_of_the_level_of_a_warning_are_no_cause_and_an_error_that_quotes_one_is() -> None:
    warnings = [
        "[05:41:44] /project/cpp/tokenizer_info.cc:146: Warning: Decoder field is not found in tokenizer.json.",
        "[2026-11-30 05:41:44 PP1] WARNING model_config.py:1: attention backend not found",
        "2026-11-30 05:41:44,123 WARNING x: denied",
    ]
    assert cause(warnings) == ""
    error = "RuntimeError: CUDA error: Warning: bad driver"
    assert cause([error, *warnings, "bye"]) == error


def test_an_error_in_the_place_of_a_warning_is_a_cause() -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "/x/a.py", line 1',
        "    warnings.warn(",
        "UserWarning: old",
    ]
    assert cause(raised) == "UserWarning: old"
    assert cause(["/x/a.py:1: UserWarning: old", "  warnings.warn(", "bye"]) == "bye"


def test_the_exit_is_read_from_systemds_line() -> None:
    assert exit_of(["a", "k: Main process exited, code=exited, status=2/INVALIDARGUMENT"]) == "exited with status 2"
    assert exit_of(["k: Main process exited, code=killed, status=9/KILL"]) == "was killed by signal 9"
    assert exit_of(["nothing"]) == ""


def answered(text: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], status, text, "no journal files were found")


def test_last_lines_are_masked_and_without_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "one\nusage: serve [-h]\n                 [--a A] [--b]\nerror: key hush\n"
    monkeypatch.setattr(journal, "run_program", lambda *_a, **_k: answered(text))
    assert last_lines("i1", Masks(["hush"]), count=2) == ["one", "error: key •••"]
    assert last_lines("", Masks()) == []


def test_a_journal_that_cannot_be_read_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "run_program", lambda *_a, **_k: answered("", 1))
    assert last_lines("i1", Masks()) == ["(the journal cannot be read: no journal files were found)"]


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (
            [
                "torch.OutOfMemoryError",
                'INFO: 127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK',
                'INFO: 127.0.0.1:5 - "GET /ready HTTP/1.1" 404 Not Found',
                'INFO: 127.0.0.1:5 - "GET /health HTTP/1.1" 503 Service Unavailable',
                '"GET /x HTTP/1.1" 500 no',
            ],
            ["torch.OutOfMemoryError", '"GET /x HTTP/1.1" 500 no'],
        ),
        (['INFO: 127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK'], ['INFO: 127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK']),
    ],
)
def test_answers_to_the_gates_own_questions_are_left_out_unless_there_is_nothing_else(
    monkeypatch: pytest.MonkeyPatch, written: list[str], shown: list[str]
) -> None:
    done = subprocess.CompletedProcess([], 0, "\n".join(written), "")
    monkeypatch.setattr(journal, "run_program", lambda *_, **__: done)
    assert last_lines("i1", Masks()) == shown


def test_a_process_that_was_killed_is_shown_however_much_its_peers_say_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killed = "Subprocess scheduler_1 (pid=8660) crashed with exit code -9."
    text = "\n".join(["loading", killed, *(f"frame {number}" for number in range(40)), "RuntimeError: closed by peer"])
    monkeypatch.setattr(journal, "run_program", lambda *_a, **_k: answered(text))
    shown = last_lines("i1", Masks(), count=5)
    assert (len(shown), shown[0], shown[-1]) == (5, killed, "RuntimeError: closed by peer")
