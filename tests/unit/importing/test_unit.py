"""Hand-written units: the story's own, and everything that systemd allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from sglang_fleet.importing import UnreadableError
from sglang_fleet.importing.unit import is_unit
from sglang_fleet.spec import load
from tests.unit.importing.support import START, argv, imported, notes, only, rendered, unit

REPOSITORY = Path(__file__).parents[3]
# design.md, "The story it exists for": the unit as it was, with the leftover flag and without the pipeline's depth.
STORY = """\
[Unit]
Description=K2.6 PP8 (Pipeline Parallel, async)
After=network.target

[Service]
Type=simple
User=root
Environment=NCCL_P2P_LEVEL=5
Environment=NCCL_ALGO=Ring
Environment=NCCL_IB_DISABLE=1
ExecStart=/root/venv_sglang211/bin/python -m sglang.launch_server \\
  --model-path /root/models/Kimi-K2.6 --port 30001 --host 0.0.0.0 \\
  --tp-size 1 --pp-size 8 --disable-cuda-graph \\
  --mem-fraction-static 0.88 --context-length 32768 --max-running-requests 64 \\
  --attention-backend triton --trust-remote-code --grammar-backend none
Restart=always

[Install]
WantedBy=multi-user.target
"""
OLD_ARGV = (
    "--model-path /root/models/Kimi-K2.6 --port 30001 --host 0.0.0.0 --tp-size 1 --pp-size 8 --disable-cuda-graph "
    "--mem-fraction-static 0.88 --context-length 32768 --max-running-requests 64 --attention-backend triton "
    "--trust-remote-code --grammar-backend none"
)


def test_the_storys_old_unit_renders_the_same_command_line() -> None:
    found = imported(STORY, "sglang-k26.service")
    assert argv(found) == OLD_ARGV
    service = only(found)
    assert service["description"] == "K2.6 PP8 (Pipeline Parallel, async)"
    assert service["user"] == "root"
    assert service["nccl"] == {"p2p_level": 5, "algo": "Ring", "ib_disable": True}
    assert "unit" not in service  # sglang-k26.service is the product's own name for k26


def test_the_storys_old_unit_makes_a_file_that_loads(tmp_path: Path) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text(imported(STORY, "sglang-k26.service").yaml)
    (tmp_path / "locks").symlink_to(REPOSITORY / "locks")
    loaded = load(folder=tmp_path, hosts={"h1": []}, overrides={})
    assert loaded.problems == []
    assert loaded.deployments["h1"].services["k26"].args.pp_size == 8


def test_what_the_story_cannot_keep_is_named_with_its_line() -> None:
    assert notes(imported(STORY, "sglang-k26.service")).splitlines() == [
        "6: Type=simple succeeds before the program was found (SGL617); the product's unit has Type=exec",
        "11: /root/venv_sglang211/bin/python: the product makes a virtual environment of its own",
        "11: KillMode=control-group: a stop kills the schedulers, and running requests are lost (SGL610)",
        "11: LimitMEMLOCK is not infinity: buffers of network cards and pinned memory need more than 8 MiB (SGL613)",
        "11: the server may write to its model: a corrupt shard has made it delete a whole one (SGL618)",
        (
            "11: PATH lacks /root/venv_sglang211/bin first and CUDA's bin: kernels that are compiled while the server "
            "runs need both (SGL630)"
        ),
        "11: CUDA_HOME is not set (SGL631)",
        (
            "11: compiled kernels lie in the home, and outlive an upgrade (SGL633); MAX_JOBS is not set: a compilation "
            "starts a compiler for each CPU (SGL634); the model is on the host, and the server may still ask the hub "
            "(SGL635)"
        ),
        (
            "16: Restart=always: no server fails 5 times within 10 s: one that cannot start is started again for ever "
            "(SGL615); the product's unit always restarts, and gives up after a few tries"
        ),
    ]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("-/v/bin/PY --model-path /m", "--model-path /m"),
        ("@/v/bin/python sglang -m sglang.launch_server --model-path /m", "--model-path /m"),
        ("+-/v/bin/python3.11 -m sglang.launch_server --model-path=/m", "--model-path /m"),
        (":/v/bin/PY --model-path $A", "--model-path $A"),
        ("/v/bin/sglang serve --model-path /m --port 1", "--model-path /m --port 1"),
        ("/v/bin/sglang serve org/model --port 1", "--model-path org/model --port 1"),
        ("/v/bin/python -u -O -m sglang.launch_server --model-path /m", "--model-path /m"),
        ("/v/bin/python /opt/sglang/launch_server.py --model-path /m", "--model-path /m"),
        ('/v/bin/PY --model-path "/my models/a\\x20b%%"', "--model-path /my models/a b%"),
        ("/v/bin/PY --model-path ${A}/x --tp-size $B", "--model-path one two/x --tp-size 4"),
        ("/v/bin/PY --model-path $$A", "--model-path $A"),
        ("/v/bin/PY --model-path '/a;b' \\\n # c\n --port 1", "--model-path /a;b --port 1"),
        ('/v/bin/PY --model-path ";" --port 1', "--model-path ; --port 1"),
        ("/bin/sleep 1 ; /v/bin/PY --model-path /m", "--model-path /m"),
        ("/bin/bash -c 'source v/bin/activate && exec PY --model-path /m'", "--model-path /m"),
        ('/bin/sh -lc "cd /srv && export X=1; Y=2 PY --model-path $$X/${B}"', "--model-path 1/4"),
        ("/usr/bin/numactl -N 0 -m 0 /v/bin/PY --model-path /m", "--model-path /m"),
        ("/usr/bin/env A=1 /v/bin/PY --model-path /m", "--model-path /m"),
        ("/root/.local/bin/uv run --python 3.11 PY --model-path /m", "--model-path /m"),
        ("/opt/conda/bin/conda run -n sg --no-capture-output PY --model-path /m", "--model-path /m"),
        ("/usr/bin/sudo -u bob -E X=1 /v/bin/PY --model-path /m", "--model-path /m"),
    ],
)  # fmt: skip
def test_whatever_starts_sglang_its_own_words_are_found(command: str, expected: str) -> None:
    """`PY` is short for `python -m sglang.launch_server`."""
    text = unit('Environment="A=one two" B=4', command=command.replace("PY", "python -m sglang.launch_server"))
    assert argv(imported(text, "x.service")) == expected


def test_the_last_of_several_starts_counts_after_an_empty_one() -> None:
    text = f"[Service]\nExecStart={START} --model-path /a\nExecStart=\nExecStart={START} --model-path /b\n"
    assert argv(imported(text, "x.service")) == "--model-path /b"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("sglang-k26.service", "%n %N %p", "sglang-k26.service sglang-k26 sglang-k26"),
        ("sglang@k26.service", "%i %p", "k26 sglang"),
        ("x.service", "%h/models 100%%", "/root/models 100%"),
    ],
)
def test_specifiers_that_the_unit_itself_answers_are_replaced(name: str, value: str, expected: str) -> None:
    found = imported(unit(f'Environment="X={value}"'), name)
    assert only(found)["environment"] == {"X": expected}


def test_a_specifier_that_only_the_host_knows_is_named() -> None:
    found = imported(unit("Environment=X=%H"), "x.service")
    assert only(found)["environment"] == {}
    assert "2: %H: its value is only known on the host" in notes(found)


def test_an_environment_file_that_is_there_is_read_and_wins(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "sglang.env").write_text("# c\nA='x y'\nMODEL=/m2\nB=\"1\n2\"\n")
    text = unit("EnvironmentFile=-/etc/sglang.env", "Environment=A=1 C=3", command=f"{START} --model-path ${{MODEL}}")
    found = imported(text, "x.service", folder=tmp_path)
    assert argv(found) == "--model-path /m2"
    assert only(found)["environment"] == {"A": "x y", "C": "3", "MODEL": "/m2", "B": "1\n2"}


def test_an_environment_file_that_is_missing_is_named_and_its_variables_keep_their_names() -> None:
    text = unit("EnvironmentFile=/etc/sglang.env", command=f"{START} --model-path ${{MODEL}}")
    found = imported(text, "x.service")
    assert only(found)["args"]["model_path"] == "${MODEL}"
    assert "2: EnvironmentFile /etc/sglang.env is not here" in notes(found)
    assert "3: --model-path: ${MODEL} is only known on the host" in notes(found)


def test_a_variable_that_nothing_sets_is_empty_as_with_systemd() -> None:
    found = imported(unit(command=f"{START} --model-path /m $EXTRA --port 1"), "x.service")
    assert argv(found) == "--model-path /m --port 1"
    assert "$EXTRA is set nowhere" in notes(found)


def test_user_folder_and_limits_are_carried_over() -> None:
    lines = ("User=llm", "WorkingDirectory=/srv/x", "LimitNOFILE=65536", "LimitMEMLOCK=infinity", "LimitCORE=1G")
    service = only(imported(unit(*lines), "x.service"))
    assert (service["user"], service["working_directory"]) == ("llm", "/srv/x")
    assert service["limits"] == {"nofile": 65536, "core": 1073741824}  # memlock is what the product sets anyway


def test_a_unit_without_a_user_runs_as_root() -> None:
    assert only(imported(unit(), "x.service"))["user"] == "root"
    assert "user" not in only(imported(unit() + "[Install]\nWantedBy=default.target\n", "x.service"))


@pytest.mark.parametrize(
    ("line", "health"),
    [
        ("TimeoutStartSec=20min", {"startup_deadline": "20m"}),
        ("TimeoutStartSec=infinity", {"startup_deadline": "30m"}),
        ("TimeoutStartSec=5", {"startup_deadline": "30m"}),
        ("TimeoutStopSec=340", {"drain": "5m"}),
        ("TimeoutStopSec=10", {}),
        ("TimeoutSec=1h 30min", {"startup_deadline": "1h30m", "drain": "1h29m20s"}),
    ],
)
def test_timeouts_become_those_of_the_gate_when_they_can(line: str, health: dict[str, str]) -> None:
    found = imported(unit(line), "x.service")
    usual = {"startup_deadline": "30m", "interval": "2s", "soak": "30s"}
    assert only(found)["health"] == usual | health


def test_the_units_own_name_is_kept_so_that_it_is_taken_over() -> None:
    found = imported(unit(), "kimi_server.service")
    assert list(found.settings["services"]) == ["kimi-server"]
    assert only(found)["unit"] == "kimi_server.service"
    assert "cannot be taken over" in notes(imported(unit(), "sglang@.service"))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[Service]\nExecStart=/bin/python -m sglang.launch_server --model "sk-open\n', 2, "expected a closing quote"),
        ('[Service]\nEnvironment="KEY=sk-open\nExecStart=/x\n', 2, "expected a closing quote in Environment"),
        ("[Unit]\nDescription=x\n", 2, "expected an ExecStart"),
        ("[Service]\nExecStart=/usr/bin/vllm serve x\n", 2, "this starts vLLM, not SGLang"),
        ("[Service]\nExecStart=/opt/start.sh\n", 2, "found that the unit starts /opt/start.sh; import that file"),
        ("[Service]\nExecStart=/bin/bash -c 'exec \"open'\n", 2, 'expected a closing "'),
    ],
)
def test_a_unit_that_cannot_be_read_says_where_and_what(text: str, line: int, message: str) -> None:
    with pytest.raises(UnreadableError, match=message) as error:
        imported(text, "x.service")
    assert error.value.line == line
    assert "sk-open" not in str(error.value)


def test_a_script_that_the_unit_starts_is_read_when_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "start.sh").write_text(f"#!/bin/bash\nexport A=1\nexec {START} --model-path /m --port $1\n")
    found = imported(unit(command="/opt/start.sh 30007"), "x.service", folder=tmp_path)
    assert argv(found) == "--model-path /m --port 30007"
    assert only(found)["environment"] == {"A": "1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# c\n\n[Unit]\n", True),
        ("ExecStart=/x\n", True),
        ("#!/bin/bash\n[[ -z $X ]]\n", False),
        ("services:\n  a: {}\n", False),
        ("[ -f x ] && y\n", False),
    ],
)
def test_a_unit_is_told_by_its_first_line(text: str, expected: bool) -> None:  # noqa: FBT001 - a table of cases
    assert is_unit(text) is expected


def test_everything_of_a_unit_that_is_rendered_is_written_only_once() -> None:
    [words] = rendered(imported(unit(command=f"{START} --model /a --model-path /b"), "x.service"))
    assert words == ["--model-path", "/b"]


def test_a_unit_that_systemctl_shows_keeps_its_name_and_its_drop_ins() -> None:
    folder = "# /etc/systemd/system"
    text = f"{folder}/kimi.service\n{unit('LimitNOFILE=5')}\n{folder}/kimi.service.d/a.conf\n[Service]\nLimitNOFILE=6\n"
    found = imported(text, "")
    assert only(found)["unit"] == "kimi.service"
    assert only(found)["limits"] == {"nofile": 6}


def test_a_quadlet_is_the_container_that_it_stands_for() -> None:
    text = (
        "[Unit]\nDescription=K2\n[Container]\nImage=img:1\nAddDevice=nvidia.com/gpu=0\nVolume=/data:/models:ro\n"
        "Environment=A=1 'B=x y'\nPublishPort=8000:8001\nPodmanArgs=--gpus device=0\n"
        "Exec=python3 -m sglang.launch_server --model-path /models/K2 \\\n  --port 8001\n"
        "[Install]\nWantedBy=default.target\n"
    )
    found = imported(text, "k2.container")
    assert argv(found) == "--model-path /data/K2 --port 8001"
    assert only(found)["environment"] == {"A": "1", "B": "x y"}
    assert (only(found)["gpus"], only(found)["description"]) == ([0], "K2")
    assert "8: clients reached the server on port 8000" in notes(found)


def test_a_kubernetes_manifest_is_told_apart() -> None:
    with pytest.raises(UnreadableError, match="found a Kubernetes manifest"):
        imported("apiVersion: v1\nkind: Pod\nspec: {}\n", "pod.yml")
