"""Read secrets on the controller, once per run, and stand for them by fingerprints."""

import hashlib
import os
import shlex
import subprocess
from functools import cache
from pathlib import Path

from sglang_fleet.spec import SecretSource

COMMAND_SECONDS = 60
_FINGERPRINT_LENGTH = 16


class SecretUnavailable(Exception):  # noqa: N818 - says what is so
    """A secret could not be read; the message says where it was looked for, never what was found."""

    def __init__(self, what: str, *, fix: str) -> None:
        super().__init__(what)
        self.fix = fix


def read_secret(source: SecretSource, *, folder: Path) -> str:
    """The value of one secret.

    Args:
        source: where it comes from: an environment variable, a file, or a command's output.
        folder: what relative file names and the command start from.

    Raises:
        SecretUnavailable: it is not there, empty, or the command failed.
    """
    if source.env is not None:
        value = os.environ.get(source.env, "")
        if not value:
            raise SecretUnavailable(
                f"the environment variable {source.env} is not set",
                fix=f"export {source.env}=… and run again",
            )
    elif source.file is not None:
        value = _read_file(folder / Path(source.file).expanduser())
    else:
        value = _run(source.command or "", folder=folder)
    if "\n" in value or "\0" in value:
        raise SecretUnavailable("the secret has more than one line", fix="keep one value, on one line")
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
    words = shlex.split(command)
    program = words[0]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except (subprocess.TimeoutExpired, UnicodeDecodeError, OSError) as error:
        raise SecretUnavailable(
            f"the command {program} gave no answer: {type(error).__name__}", fix="try it by hand"
        ) from None
    value = done.stdout.strip("\r\n")
    if done.returncode or not value:
        raise SecretUnavailable(
            f"the command {program} ended with status {done.returncode} and {'an' if value else 'no'} answer",
            fix="try it by hand; its output is not shown here, since it may hold the secret",
        )
    return value
