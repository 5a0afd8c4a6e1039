import pytest

from sglang_fleet.host.machine.commandline import exec_start, serves

STORY = """\
[Unit]
ExecStart=/not/this --port 1
[Service]
# ExecStart=/nor/this --port 2
ExecStart=/root/venv/bin/python -m sglang.launch_server \\
  --model-path /root/models/Kimi-K2.6 --port 30001 --host 0.0.0.0 \\
# a comment between
  --api-key 'hush hush'
"""


def test_the_story_unit() -> None:
    found = serves(exec_start(STORY))
    assert (found.host, found.port, found.api_key, found.keys) == ("0.0.0.0", 30001, "hush hush", ("hush hush",))  # noqa: S104 - read


@pytest.mark.parametrize(
    ("texts", "port"),
    [
        (["[Service]\nExecStart=-/x --port=7\n"], 7),
        (["[Service]\nExecStart=/x --port 7\n", "[Service]\nExecStart=\nExecStart=/x --port 8\n"], 8),
        (["[Service]\nExecStart=/bin/bash -c 'exec /x --host h --port 9'\n"], 9),
        (["[Service]\nExecStart=/x -m sglang.launch_server\n"], 30000),
        (["[Service]\nExecStart=/opt/start.sh\n"], None),
        (["[Service]\nExecStart=/x -m sglang.launch_server --config /etc/s.yaml\n"], None),
        (["[Service]\nExecStart=/x --port $PORT\n"], None),
        (["[Service]\nExecStart=/x 'open --port 3\n"], 3),
        ([], None),
    ],
)
def test_the_port_of_other_ways_to_write_it(texts: list[str], port: int | None) -> None:
    assert serves(exec_start(*texts)).port == port


def test_both_keys_are_to_be_masked() -> None:
    found = serves(["x", "--api-key", "one", "--admin-api-key=two"])
    assert (found.api_key, found.keys) == ("one", ("one", "two"))
    assert found.host == "127.0.0.1"
