"""The stand-in serves, drains, dies and misbehaves as its documentation says."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.lab.standin_running import GENERATE, Running

if TYPE_CHECKING:
    from collections.abc import Callable

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"level": "INFO", "handlers": ["console"]},
    "loggers": {"sglang.srt.entrypoints.engine": {"level": "WARNING"}},
}


COMPLETION = {"prompt": "one two", "max_tokens": 3}


def test_it_refuses_connections_then_says_503_then_200(start: Callable[..., Running]) -> None:
    server = start(start_delay=0.4, health_503_for=0.4)
    assert server.ask("/health")[0] == 0
    server.wait_for(503)
    assert server.ask("/v1/completions", COMPLETION)[0] == 503
    server.wait_for(200)
    assert [server.ask(path)[0] for path in ("/ready", "/health_generate", "/v1/models")] == [200] * 3


def test_completions_have_the_real_shapes(start: Callable[..., Running]) -> None:
    server = start("--enable-metrics", "--served-model-name", "k26")
    server.wait_for(200)
    answer = json.loads(server.ask("/generate", GENERATE)[1])
    assert answer["text"]
    assert (answer["meta_info"]["prompt_tokens"], answer["meta_info"]["completion_tokens"]) == (2, 3)
    assert {"id", "finish_reason"} <= set(answer["meta_info"])
    assert json.loads(server.ask("/v1/completions", COMPLETION)[1])["usage"]["completion_tokens"] == 3
    chat = {"messages": [{"role": "user", "content": "one two"}], "max_tokens": 3}
    assert json.loads(server.ask("/v1/chat/completions", chat)[1])["choices"][0]["message"]["content"]
    assert json.loads(server.ask("/v1/models")[1])["data"][0]["id"] == "k26"
    assert "sglang:generation_tokens_total{" in server.ask("/metrics")[1]
    assert '"} 9' in server.ask("/metrics")[1]
    stream = server.ask("/v1/completions", {**COMPLETION, "stream": True})[1]
    assert stream.count("data: {") == 3
    assert stream.endswith("data: [DONE]\n\n")


def test_server_info_answers_the_effective_arguments(start: Callable[..., Running]) -> None:
    server = start("--pp-size", "8", "--disable-cuda-graph")
    server.wait_for(200)
    info = json.loads(server.ask("/get_server_info")[1])
    assert (info["pp_size"], info["version"], info["standin_marker"]) == (8, "0.5.23", "here")
    assert info["cuda_graph_config"]["decode"]["backend"] == "disabled"
    assert "--pp-size 8" in info["launch_command"]
    assert server.ask("/metrics")[0] == 404


def test_a_key_closes_all_but_health_and_metrics(start: Callable[..., Running], tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.yaml"
    secrets.write_text('api-key: "poison"\n')
    server = start("--config", str(secrets), "--enable-metrics")
    server.wait_for(200)
    assert [server.ask(path)[0] for path in ("/health_generate", "/ready", "/metrics")] == [200] * 3
    assert [server.ask(path)[0] for path in ("/v1/models", "/server_info", "/nowhere")] == [401] * 3
    assert server.ask("/v1/models", key="poison")[0] == 200
    assert "'api_key': 'poison'" in server.log.read_text()


def test_a_logging_config_keeps_the_key_out_of_the_log(start: Callable[..., Running], tmp_path: Path) -> None:
    path = tmp_path / "logging.json"
    path.write_text(json.dumps(LOGGING))
    server = start("--api-key", "poison", env={"SGLANG_LOGGING_CONFIG_PATH": str(path)})
    server.wait_for(200)
    time.sleep(0.1)
    assert "poison" not in server.log.read_text()
    assert "fired up" in server.log.read_text()


def test_a_logging_config_that_is_missing_ends_it(start: Callable[..., Running]) -> None:
    server = start(env={"SGLANG_LOGGING_CONFIG_PATH": "/nowhere.json"})
    assert server.process.wait(10) == 1
    assert "does not exist" in server.log.read_text()


def test_sigterm_finishes_the_request_in_flight(start: Callable[..., Running]) -> None:
    server = start(token_seconds=0.1)
    server.wait_for(200)
    body = json.dumps({"prompt": "x", "max_tokens": 8}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        client.sendall(head + body)
        time.sleep(0.2)
        server.process.terminate()
        time.sleep(0.1)
        assert server.ask("/health")[0] == 503
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert b"200 OK" in received
    assert b'"completion_tokens": 8' in received
    assert server.process.wait(5) == 0


def test_without_its_scheduler_it_is_killed(start: Callable[..., Running]) -> None:
    server = start()
    server.wait_for(200)
    os.kill(server.scheduler(), signal.SIGKILL)
    assert server.process.wait(5) == -signal.SIGKILL


def test_an_unknown_flag_ends_with_2(start: Callable[..., Running]) -> None:
    server = start("--no-such-flag")
    assert server.process.wait(10) == 2
    assert "error: unrecognized arguments: --no-such-flag" in server.log.read_text()


def test_a_model_folder_that_is_not_there_ends_with_1(start: Callable[..., Running]) -> None:
    assert start("--model-path", "/nowhere/at/all").process.wait(10) == 1


@pytest.mark.parametrize(
    ("faults", "status"),
    [
        ({"exit_at_start": 7}, 7),
        ({"exit_after": {"seconds": 0.2, "code": 3}, "start_delay": 5}, 3),
        ({"exit_after_ready": {"seconds": 0.1, "code": 4}}, 4),
        ({"scheduler_dies_after": 0.1}, -signal.SIGKILL),
        ({"only_with_flag": {"--trust-remote-code": {"exit_at_start": 5}}}, 5),
        ({"ports": {"1": {"exit_at_start": 6}}, "exit_at_start": 8}, 8),
    ],
)
def test_it_ends_when_told_to(start: Callable[..., Running], faults: dict[str, Any], status: int) -> None:
    assert start("--trust-remote-code", **faults).process.wait(10) == status


def test_a_fault_there_is_not_is_an_error(start: Callable[..., Running]) -> None:
    server = start(flaping=1)
    assert server.process.wait(10) == 1
    assert "no such fault: flaping" in server.log.read_text()


def test_a_dead_scheduler_looks_well_and_answers_nothing(start: Callable[..., Running]) -> None:
    server = start(dead_scheduler=True)
    server.wait_for(200)
    assert server.ask("/generate", GENERATE, timeout=0.3)[0] == 0


def test_it_hangs_after_so_many_requests(start: Callable[..., Running]) -> None:
    server = start(hang_after=1)
    server.wait_for(200)
    assert server.ask("/generate", GENERATE)[0] == 200
    assert server.ask("/generate", GENERATE, timeout=0.3)[0] == 0
    assert server.ask("/health")[0] == 200


def test_it_flaps(start: Callable[..., Running]) -> None:
    server = start(flapping=0.3)
    for status in (200, 503, 200, 503):
        server.wait_for(status, seconds=2)


def test_an_empty_completion_has_no_token(start: Callable[..., Running]) -> None:
    server = start(empty_completion=True)
    server.wait_for(200)
    answer = json.loads(server.ask("/generate", GENERATE)[1])
    assert (answer["text"], answer["meta_info"]["completion_tokens"]) == ("", 0)


def text_of(server: Running) -> str:
    return str(json.loads(server.ask("/generate", GENERATE)[1])["text"])


def counted(server: Running) -> str:
    """The line of the generated tokens in /metrics."""
    lines = server.ask("/metrics")[1].splitlines()
    return next(line for line in lines if line.startswith("sglang:generation_tokens_total{"))


def test_health_may_fail_while_completions_come(start: Callable[..., Running]) -> None:
    server = start(health_503_while_serving=True)
    server.wait_for(503)
    assert server.ask("/generate", GENERATE)[0] == 200


def test_models_are_listed_before_it_serves(start: Callable[..., Running]) -> None:
    server = start(health_503_for=60)
    server.wait_for(503)
    assert server.ask("/v1/models")[0] == 200


def test_max_tokens_may_be_ignored(start: Callable[..., Running]) -> None:
    server = start(max_tokens_ignored=2)
    server.wait_for(200)
    assert json.loads(server.ask("/generate", GENERATE)[1])["meta_info"]["completion_tokens"] == 5


def test_counters_may_stand_still(start: Callable[..., Running]) -> None:
    server = start("--enable-metrics", counters_stuck=True)
    server.wait_for(200)
    before = counted(server)
    assert server.ask("/generate", GENERATE)[0] == 200
    assert counted(server) == before


def test_greedy_answers_are_the_same_each_time_and_may_be_others(start: Callable[..., Running]) -> None:
    server = start()
    server.wait_for(200)
    usual = text_of(server)
    assert text_of(server) == usual
    server.faults.write_text(json.dumps({"start_delay": 0, "health_503_for": 0, "other_answers": True}))
    assert text_of(server) not in ("", usual)


def test_server_info_may_have_other_arguments_than_were_asked_for(start: Callable[..., Running]) -> None:
    server = start("--pp-size", "8", wrong_arguments={"pp_size": 4})
    server.wait_for(200)
    info = json.loads(server.ask("/server_info")[1])
    assert info["pp_size"] == 4
    assert "--pp-size 8" in info["launch_command"]


def test_loopback_only_leaves_other_addresses_out(start: Callable[..., Running]) -> None:
    server = start("--host", "0.0.0.0", loopback_only=True)  # noqa: S104 - the fault keeps it closed
    server.wait_for(200)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=1).close()


def test_faults_may_change_while_it_runs(start: Callable[..., Running]) -> None:
    server = start()
    server.wait_for(200)
    server.faults.write_text(json.dumps({"health_503_for": 3600}))
    server.wait_for(503)


def test_deaf_to_sigterm(start: Callable[..., Running]) -> None:
    server = start(ignore_sigterm=True)
    server.wait_for(200)
    server.process.terminate()
    time.sleep(0.3)
    assert server.ask("/health")[0] == 200


def test_a_slow_drain_takes_longer(start: Callable[..., Running]) -> None:
    server = start(slow_drain=0.6)
    server.wait_for(200)
    begun = time.monotonic()
    server.process.terminate()
    assert server.process.wait(5) == 0
    assert time.monotonic() - begun > 0.5


def test_an_orphan_keeps_the_port(start: Callable[..., Running]) -> None:
    server = start(orphan=True)
    server.wait_for(200)
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    orphan = next(int(pid) for pid in children if int(pid) != server.scheduler())
    try:
        server.process.terminate()
        assert server.process.wait(5) == 0
        os.kill(orphan, signal.SIGTERM)
        with socket.create_connection(("127.0.0.1", server.port), timeout=1):
            pass  # the kernel accepts for the orphan, who never answers
        second = start("--port", str(server.port), bind_hang=0.1)
        assert second.process.wait(10) == -signal.SIGKILL
        assert "[Errno 98] error while attempting to bind" in second.log.read_text()
    finally:
        os.kill(orphan, signal.SIGKILL)


def test_importing_it_loads_no_server(site: Path) -> None:
    """Hosts import it to verify a venv; many of them share two cores."""
    program = "import sys; import sglang; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(site)}, capture_output=True, check=True
    )
    assert {"argparse", "http.server", "json"}.isdisjoint(done.stdout.decode().split())
