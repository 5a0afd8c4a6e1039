"""Put the host program in place and run one of its commands: sent as `python3 -I -c SOURCE COMMAND`.

Standard input carries one JSON object: `state`, `digest`, `program` (base64 of the zipapp), `probe` (where to keep the
compiled probe), `read_only` and `request`. Nothing of it stands in argv, where every user of the host could read it.
Without `program` the one that is kept here is run; where there is none, that is said, and nothing else is done.
"""

import binascii
import hashlib
import importlib.util
import io
import json
import marshal
import os
import runpy
import sys

NOT_KEPT = "the program is not kept here"
"""What is said when it was not sent either; roles/connection.py sends it then."""

PYC_HEAD = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
"""What begins a compiled module that is not held against a source: the name of the program says what it was made of."""


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


def keep_compiled(program: str, probe: str) -> None:
    """Compile the program and its probe for the calls to come, see entry.py and kept_probe.py; they also do without."""
    places = ["%s-%x.bin" % (place, sys.hexversion) for place in (program[: -len(".pyz")], probe)]
    if all(os.path.exists(place) for place in places):
        return
    import zipfile  # noqa: PLC0415 - slow to import, and needed once

    with zipfile.ZipFile(program) as archive:
        sources = {name: archive.read(name) for name in archive.namelist() if name != "__main__.py"}
    codes = {name: compile(text, name, "exec", dont_inherit=True, optimize=2) for name, text in sources.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, code in codes.items():
            archive.writestr(name + "c", PYC_HEAD + marshal.dumps(code))
    packed = buffer.getvalue()
    try:
        write(places[0], hashlib.sha256(packed).hexdigest().encode() + packed, mode=0o644)
        write(places[1], marshal.dumps(codes["sglang_fleet_host/probe.py"]), mode=0o644)
    except OSError:
        return  # a disk that is full is told about by what needs it


def write(path: str, content: bytes, *, mode: int) -> None:
    """Write a file so that its name never stands for half of it."""
    beside = os.path.join(os.path.dirname(path), "." + os.urandom(8).hex())
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
        if not envelope["read_only"]:
            keep_compiled(kept, os.path.join(folder, envelope["probe"]))  # another Python may have come since
        run(kept, envelope["request"])
        return
    content = binascii.a2b_base64(envelope["program"])
    if envelope["read_only"]:
        run(in_memory(content), envelope["request"])
        return
    try:
        path = install(folder, envelope["digest"], content)
    except OSError as error:
        sys.exit("error: %s: %s\nfix: see to the disk, then run again" % (envelope["state"], error.strerror))
    keep_compiled(path, os.path.join(folder, envelope["probe"]))
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
