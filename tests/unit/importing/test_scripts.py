"""Launch scripts: what they start, with what, and what only the host could decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sglang_fleet.importing import UnreadableError
from tests.unit.importing.support import argv, imported, loaded, notes, only, rendered

if TYPE_CHECKING:
    from pathlib import Path

SERVER = "python3 -m sglang.launch_server --model-path /m"

SCRIPT = """\
#!/usr/bin/env bash
set -euo pipefail
source /opt/venv/bin/activate
cd /srv/sglang
ulimit -n 65536 -l unlimited
export NCCL_DEBUG=WARN CUDA_VISIBLE_DEVICES=0,1
MODEL=${MODEL:-/models/K2}
ARGS=(
  --model-path "$MODEL"   # where it lies
  --tp-size 2
)
if [[ "${DEBUG:-0}" == 1 ]]; then ARGS+=(--log-level debug); fi
modprobe nvidia-uvm
SGLANG_X="a b" nohup python -m sglang.launch_server "${ARGS[@]}" \\
  --port ${PORT:-30000} "$@" > log.txt 2>&1 &
echo started $!
"""


def test_a_script_with_all_that_scripts_have() -> None:
    found = imported(SCRIPT)
    assert argv(found) == "--model-path /models/K2 --tp-size 2 --port 30000"
    service = only(found)
    assert service["gpus"] == [0, 1]
    assert service["nccl"] == {"debug": "WARN"}
    assert service["environment"] == {"SGLANG_X": "a b"}
    assert service["working_directory"] == "/srv/sglang"
    assert service["limits"] == {"nofile": 65536}
    assert list(found.settings["services"]) == ["k2"]  # `run` would say nothing


def test_what_a_script_does_besides_is_named() -> None:
    said = notes(imported(SCRIPT))
    assert "3: /opt/venv/bin/activate: the product makes a virtual environment of its own" in said
    assert "13: modprobe nvidia-uvm is not carried over" in said
    assert "14: the output goes to the journal, no longer to a file" in said
    assert "14: MODEL, PORT: can be set from outside; the script's own defaults were taken" in said
    assert "14: stop what runs this today before the first deploy" in said


@pytest.mark.parametrize(
    "script",
    [
        f"if command -v sglang; then {SERVER}; else echo no; fi",
        f"if ! command -v sglang; then echo no; else {SERVER}; fi",
        f'case "$(hostname)" in a) echo x;; b) {SERVER};; esac',
        f"while true; do {SERVER}; sleep 1; done",
        f"[ -d /opt ] && {SERVER}",
        f"[ -d /opt ] || {SERVER}",
        f"start() {{ {SERVER}; }}\nif [ -f /x ]; then start; fi",
        f"for host in $(cat hosts); do {SERVER}; done",
        f"if [ -d /x ]; then [ -f /y ] || exit 1; if ! which z; then exit 2; fi; {SERVER}; fi",
        f"main() {{ which x || return 1; while ! up; do exit 3; done; {SERVER}; }}\nif [ -d /x ]; then main; fi",
        f"{SERVER} | tee log",
        f"tmux new-session -d -s s '{SERVER}'",
        f"screen -dmS s bash -c '{SERVER}'",
        f"docker exec -it c bash -c '{SERVER}'",
        f'CMD="{SERVER}"\neval "$CMD"',
        f"bash <<'EOF'\n{SERVER}\nEOF",
        f"cat > s.sh <<'EOF'\n#!/bin/sh\n{SERVER}\nEOF\nbash s.sh",
    ],
)
def test_a_start_in_any_corner_is_found_once(script: str) -> None:
    assert rendered(imported(script)) == [["--model-path", "/m"]]


def test_a_choice_that_only_the_host_can_make_is_named() -> None:
    said = notes(imported(f"if [ -f /x ]; then A=1; fi\nif [ -d /y ]; then {SERVER}; fi"))
    assert "1: only the host can decide this; what it sets was left out: A" in said
    assert "2: only the host can decide this; the first branch that starts SGLang was taken" in said


def test_several_starts_become_several_services() -> None:
    found = imported(f"for i in 0 1; do CUDA_VISIBLE_DEVICES=$i {SERVER} --port $((30000 + i)) & done", "serve.sh")
    assert [service["gpus"] for service in loaded(found).values()] == [[0], [1]]
    assert [words[-1] for words in rendered(found)] == ["30000", "30001"]
    assert list(loaded(found)) == ["m", "m-2"]


def test_the_same_command_line_again_is_no_second_service() -> None:
    found = imported(f"for level in 1 2; do X=$level {SERVER}; done")
    assert only(found)["environment"] == {"X": "1"}
    assert "1: the same command line is started again" in notes(found)


def test_a_unit_that_a_script_writes_is_read_as_a_unit() -> None:
    text = (
        "PORT=30003\nsudo tee /etc/systemd/system/sglang-k26.service <<EOF\n[Service]\nUser=llm\n"
        "ExecStart=/v/bin/python -m sglang.launch_server --model-path /m \\\\\n  --port $PORT\nNice=5\nEOF\n"
        "systemctl enable x\n"
    )
    found = imported(text)
    assert argv(found) == "--model-path /m --port 30003"
    assert (only(found)["user"], list(loaded(found))) == ("llm", ["run"])
    assert "7: Nice=5 is not carried over" in notes(found)


def test_a_value_that_only_the_host_knows_keeps_its_text_and_is_named() -> None:
    found = imported(f'{SERVER} --served-model-name "$(hostname)-x" --port $PORT $EXTRA "$@"')
    args = only(found)["args"]
    assert args == {"model_path": "/m", "served_model_name": "$(hostname)-x", "port": "$PORT"}
    said = notes(found)
    assert "1: --served-model-name: $(hostname)-x is only known on the host; write its value" in said
    assert "1: --port: $PORT is only known on the host; write its value" in said
    assert "1: $EXTRA: what it adds is only known on the host: left out" in said


def test_an_option_that_a_lost_backslash_cuts_off_is_named() -> None:
    found = imported(f"{SERVER} \\\n  # --tp-size 2 \\\n  --port 1\n")
    assert argv(found) == "--model-path /m"
    assert "3: --port starts a command of its own" in notes(found)


def test_a_backslash_with_blanks_or_a_comment_behind_it_goes_on() -> None:
    assert (
        argv(imported(f"{SERVER} \\  \n --tp-size 2 \\ # two\n --port 1\n")) == "--model-path /m --tp-size 2 --port 1"
    )


def test_a_file_that_is_sourced_is_read_when_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "env.sh").write_text("PORT=30005\nexport NCCL_P2P_LEVEL=SYS\n")
    found = imported(f"set -a; . ./env.sh; set +a\n{SERVER} --port $PORT", folder=tmp_path)
    assert argv(found) == "--model-path /m --port 30005"
    assert only(found)["nccl"] == {"p2p_level": "SYS"}
    assert "./env.sh is not here" in notes(imported(f". ./env.sh\n{SERVER}"))


@pytest.mark.parametrize(
    ("script", "line", "message"),
    [
        ("echo a\necho 'open\n", 2, "expected a closing '"),
        ('A=1\npython -m sglang.launch_server --api-key "sk-1\n', 2, 'expected a closing "'),
        ("if true; then\n  echo\n", 3, "expected elif or else or fi"),
        ("echo $(date\n", 1, "expected a closing )"),
        ("for x in a; do echo; esac\n", 2, "expected done"),
        ("fi\n", 1, "expected a start of SGLang"),
        ("echo )\n", 1, "expected a command, found )"),
        ("echo python -m sglang.launch_server\n", 1, "expected a start of SGLang"),
        ("vllm serve x\n", 1, "this starts vLLM, not SGLang"),
        ("", 1, "expected a start of SGLang"),
        ("x() { x; }\nx\n", 1, "expected a start of SGLang"),
        ("(" * 300, 1, "too deep"),
    ],
)
def test_a_script_that_cannot_be_read_says_where_and_what(script: str, line: int, message: str) -> None:
    with pytest.raises(UnreadableError) as error:
        imported(script)
    assert message in error.value.message
    assert error.value.line == line
    assert "sk-1" not in error.value.message
