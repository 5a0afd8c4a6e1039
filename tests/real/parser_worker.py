"""Runs in the Python that has SGLang itself: parses command lines with its own parser.

Each line of stdin is a JSON list of command lines, each line of stdout the list of what came of them: the message of
the error that ended the parsing, or the values that differ from those of `--model-path m`. The first line of stdout
has SGLang's version, all its options, and those values. What SGLang checks after parsing is not reached.
"""

import argparse
import json
import os
import sys
from typing import Any, NoReturn

PLAIN = ["--model-path", "m"]


class RefusedError(Exception):
    """The parser ended the process."""


class Parser(argparse.ArgumentParser):
    """As SGLang makes it, but an error is raised instead of printed with half a thousand lines of usage."""

    def error(self, message: str) -> NoReturn:
        raise RefusedError(message)

    def print_help(self, file: object = None) -> None:
        """Ends the process afterwards."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise RefusedError(message or f"exit {status}")


def main() -> None:
    """Answer until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what SGLang prints at import is no answer
    from sglang.srt.server_args import ServerArgs  # noqa: PLC0415 - after stdout is out of its reach
    from sglang.version import __version__  # noqa: PLC0415 - as above

    parser = Parser(prog="sglang serve")
    ServerArgs.add_cli_args(parser)
    plain = vars(parser.parse_args(PLAIN))
    options = [option for action in parser._actions for option in action.option_strings]  # noqa: SLF001 - no other way
    print(json.dumps([__version__, options, plain]), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps([_parsed(parser, words, plain) for words in json.loads(line)]), file=answers, flush=True)


def _parsed(parser: Parser, words: list[str], plain: dict[str, Any]) -> str | dict[str, Any]:
    try:
        values = vars(parser.parse_args(_merged(parser, words)))
    except RefusedError as refused:
        return str(refused)
    except Exception as error:  # noqa: BLE001 - whatever a type or an action raises ends the real process too
        return f"{type(error).__name__}: {error}"
    return {name: value for name, value in values.items() if name not in plain or repr(plain[name]) != repr(value)}


def _merged(parser: Parser, words: list[str]) -> list[str]:
    """With the words that a configuration file stands for, as SGLang's `prepare_server_args` does it."""
    if "--config" not in words:
        return words
    try:
        from sglang.srt.utils import server_args_config_parser as config  # noqa: PLC0415 - where it is in newer releases
    except ImportError:
        from sglang.srt import server_args_config_parser as config  # noqa: PLC0415 - and in older ones
    words = config.ConfigArgumentMerger(parser).merge_config_with_args(words)
    assert isinstance(words, list)
    return words


if __name__ == "__main__":
    main()
