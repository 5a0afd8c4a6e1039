"""Read secrets on the controller, once per run, and stand for them by fingerprints."""

import hashlib
import os
import shlex
import subprocess
from functools import cache
from pathlib import Path

from sglang_fleet.spec import SecretSource
from sglang_fleet.spec.secrets import is_argument
from sglang_fleet.systemd_text import is_environment_value

COMMAND_SECONDS = 60
_FINGERPRINT_LENGTH = 16


class SecretUnavailable(Exception):  # noqa: N818 - says what is so
    """A secret could not be read; the message says where it was looked for, never what was found."""

    def __init__(self, what: str, *, fix: str) -> None:
        super().__init__(what)
        self.fix = fix


def read_secret(source: SecretSource, *, name: str, folder: Path) -> str:
    """The value of one secret.

    Args:
        source: where it comes from: an environment variable, a file, or a command's output.
        name: the secret's name, which says whether the value becomes an argument of SGLang.
        folder: what relative file names and the command start from.

    Raises:
        SecretUnavailable: it is not there, empty, the command failed, or the server could not be given the value.
    """
    if source.env is not None:
        value = os.environ.get(source.env, "")
        if not value:
            raise SecretUnavailable(
                f"the environment variable {source.env} is not set",
                fix=f"export {source.env}=… and run again",
            )
    elif source.file is not None:
        value = _read_file(folder / os.path.expanduser(source.file))  # noqa: PTH111 - leaves an unknown ~user as it is
    else:
        value = _run(source.command or "", folder=folder)
    if "\n" in value or "\r" in value:
        raise SecretUnavailable("the secret has more than one line", fix="keep one value, on one line")
    if not is_environment_value(value):
        raise SecretUnavailable("the secret is not UTF-8 text", fix="keep a text, such as base64, as the secret")
    if is_argument(name) and value.startswith("-"):
        # Its file becomes a command line inside SGLang, whose parser then misses the value.
        raise SecretUnavailable("the secret begins with -, which SGLang takes for an option", fix="choose another")
    return value


@cache
def fingerprint(name: str, value: str) -> str:
    """What a release keeps of a secret: enough to see that it changed, too slow a hash to guess it from."""
    digest = hashlib.scrypt(value.encode(), salt=f"sglang-fleet/{name}".encode(), n=2**14, r=8, p=1, dklen=32)
    return digest.hex()[:_FINGERPRINT_LENGTH]


def _read_file(path: Path) -> str:
    try:
        value = path.read_text(encoding="utf-8").strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SecretUnavailable(f"{path} cannot be read: {reason}", fix="put the secret there, mode 0600") from None
    if not value:
        raise SecretUnavailable(f"{path} is empty", fix="put the secret there, mode 0600")
    return value


def _run(command: str, *, folder: Path) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        raise SecretUnavailable("the command has a quote that is never closed", fix="close the quote") from None
    program = words[0]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except OSError:  # on a PATH with folders that are closed to us, "not found" looks like "not allowed"
        raise SecretUnavailable(f"there is no command {program} to run", fix="install it, or correct it") from None
    except subprocess.TimeoutExpired:
        what = f"the command {program} did not answer within {COMMAND_SECONDS} s"
        raise SecretUnavailable(what, fix="try it by hand") from None
    except UnicodeDecodeError:
        raise SecretUnavailable(f"the command {program} did not answer with UTF-8 text", fix="try it by hand") from None
    value = done.stdout.strip("\r\n")
    if done.returncode or not value:
        raise SecretUnavailable(
            f"the command {program} ended with status {done.returncode} and {'an' if value else 'no'} answer",
            fix="try it by hand; its output is not shown here, since it may hold the secret",
        )
    return value
