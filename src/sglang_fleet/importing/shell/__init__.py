"""Read shell scripts without running them: `run` hands over each command that may start a server."""

from sglang_fleet.importing.shell.blocks import Handler
from sglang_fleet.importing.shell.running import Runner, run
from sglang_fleet.importing.shell.state import State

__all__ = ["Handler", "Runner", "State", "run"]
