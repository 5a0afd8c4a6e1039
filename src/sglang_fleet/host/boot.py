"""Put the host program in place and run one of its commands: sent as `python3 -I -c SOURCE COMMAND`.

Standard input carries one JSON object: `state`, `digest`, `program` (base64 of the zipapp), `probe` (where to keep the
compiled probe), `read_only` and `request`. Nothing of it stands in argv, where every user of the host could read it.
Without `program` the one that is kept here is run; where there is none, that is said, and nothing else is done.
"""

import base64
import hashlib
import io
import json
import marshal
import os
import runpy
import secrets
import sys

NOT_KEPT = "the program is not kept here"
"""What is said when it was not sent either; roles/connection.py sends it then."""


def is_kept(path: str, digest: str) -> bool:
    """Tell whether the program is there, whole."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest().startswith(digest)
    except OSError:
        return False


def install(folder: str, digest: str, content: bytes) -> str:
    """Write the program under its digest unless it is there, whole, already."""
    path = os.path.join(folder, digest + ".pyz")
    if is_kept(path, digest):
        return path
    os.makedirs(folder, exist_ok=True)
    for place in (folder, os.path.dirname(folder)):
        os.chmod(place, 0o755)  # noqa: S103 - the account of a service goes through it; what is secret has its own mode
    write(path, content, mode=0o755)
    return path


def keep_probe(program: str, place: str) -> None:
    """Compile the program's probe for the runs to come, see kept_probe.py; they also do without."""
    path = "%s-%x.bin" % (place, sys.hexversion)
    if os.path.exists(path):
        return
    import zipfile  # noqa: PLC0415 - slow to import, and needed once

    with zipfile.ZipFile(program) as archive:
        source = archive.read("sglang_fleet_host/probe.py")
    code = compile(source, "probe.py", "exec", dont_inherit=True, optimize=2)
    try:
        write(path, marshal.dumps(code), mode=0o644)
    except OSError:
        return  # a disk that is full is told about by what needs it


def write(path: str, content: bytes, *, mode: int) -> None:
    """Write a file so that its name never stands for half of it."""
    beside = os.path.join(os.path.dirname(path), "." + secrets.token_hex(8))
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
    except OSError:
        os.unlink(beside)
        raise


def main() -> None:
    """Read the envelope, install, run."""
    os.umask(0o022)  # a hardened root's would lock the service's account out of its own venv
    envelope = json.load(sys.stdin)
    folder = os.path.join(envelope["state"], "host")
    if not envelope["program"]:
        kept = os.path.join(folder, envelope["digest"] + ".pyz")
        if not is_kept(kept, envelope["digest"]):
            sys.exit(NOT_KEPT)
        run(kept, envelope["request"])
        return
    content = base64.b64decode(envelope["program"])
    if envelope["read_only"]:
        run(in_memory(content), envelope["request"])
        return
    try:
        path = install(folder, envelope["digest"], content)
    except OSError as error:
        sys.exit("error: %s: %s\nfix: see to the disk, then run again" % (envelope["state"], error.strerror))
    keep_probe(path, os.path.join(folder, envelope["probe"]))
    run(path, envelope["request"])


def in_memory(content: bytes) -> str:
    """Give the program a path without writing to any disk: who only looks leaves nothing behind."""
    descriptor = os.memfd_create("sglang-fleet")
    os.write(descriptor, content)
    return "/proc/self/fd/%d" % descriptor


def run(path: str, request: object) -> None:
    """Run the program as if it had been started with this request."""
    sys.stdin = io.StringIO(json.dumps(request))
    sys.argv = [path, *sys.argv[1:]]
    runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main()
