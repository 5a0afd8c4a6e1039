"""The lab's command line: `python -m lab up`, `down`, `status`, `run`, `shell`, `reset`."""

import argparse
import os
import sys

from . import network
from .errors import LabError
from .fleet import Lab, labs

DESCRIPTION = """\
Real systemd hosts on this machine, in a network namespace of their own.

  python -m lab up --hosts 4
  python -m lab run -- pyinfra inventory/lab.py exec -- uptime
  python -m lab shell h1
  python -m lab down
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    name = os.environ.get("SGLANG_FLEET_LAB_NAME", "lab")
    common.add_argument("--name", default=name, help="which lab, when several run (default: %(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", parents=[common], help="start the lab, or what is missing of it")
    up.add_argument("--hosts", type=int, default=4, metavar="N", help="at least N hosts (default: %(default)s)")
    up.add_argument("--story", action="store_true", help="with the hand-written server of the story on each host")
    up.add_argument("--real", action="store_true", help="with the packages of SGLang itself, for the CPU, in its index")
    down = commands.add_parser("down", parents=[common], help="end and remove everything but the cache")
    down.add_argument("--all", action="store_true", help="every lab of this checkout")
    commands.add_parser("status", parents=[common], help="what runs")
    reset = commands.add_parser("reset", parents=[common], help="give hosts a new disk and boot them")
    reset.add_argument("hosts", nargs="*", metavar="HOST")
    run = commands.add_parser("run", parents=[common], help="run a command inside the lab's network")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    shell = commands.add_parser("shell", parents=[common], help="a root shell on a host, or one command there")
    shell.add_argument("host", metavar="HOST")
    shell.add_argument("arguments", nargs=argparse.REMAINDER, metavar="COMMAND")
    return parser


def _status(lab: Lab) -> int:
    if not lab.running:
        print(f"lab {lab.name!r} is not up: start it with `python -m lab up`")
        return 1
    print(f"lab {lab.name!r}: {lab.url}, {lab.folder}")
    for host in lab.hosts:
        print(f"  {host.name:4} {host.address:12} {f'up, pid {host.pid}' if host.running else 'off'}")
    return 0


def _run(lab: Lab, arguments: list[str]) -> int:
    """Become the command: exit status, signals and terminal are then its own."""
    command = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not command:
        raise LabError("run what? `python -m lab run -- COMMAND ...`")
    network.enter(lab.name)
    os.environ.update(lab.environment)
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        raise LabError(f"cannot run {command[0]!r}: {error.strerror}") from None


def _shell(lab: Lab, name: str, arguments: list[str]) -> int:
    command = lab.host(name).command(" ".join(arguments) or "exec env TERM=linux bash -l")
    os.execvp(command[0], command)  # noqa: S606 - no shell is the point


def main() -> int:
    """Do what the command line says; the exit status."""
    options = _parser().parse_args()
    try:
        lab = Lab(options.name)
        match options.command:
            case "up":
                lab.up(hosts=options.hosts, with_story=options.story, with_real=options.real)
                return _status(lab)
            case "down":
                for one in labs() if options.all else [lab]:
                    one.down()
            case "status":
                return _status(lab)
            case "reset":
                lab.reset(*(lab.host(name) for name in options.hosts))
            case "run":
                return _run(lab, options.arguments)
            case "shell":
                return _shell(lab, options.host, options.arguments)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
