"""What is on a host while something happens and after it: every command line, and every file that was written."""

import json
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.real.hosts.anyfleet import AnyHost

_COMMAND_LINES = """
import json, os, sys, threading
seen, end = set(), threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), end.set()), daemon=True).start()
while not end.wait(0.1):
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            try:
                seen.add(open("/proc/" + pid + "/cmdline", "rb").read().decode("latin-1"))
            except OSError:
                pass
json.dump(sorted(seen), sys.stdout)
"""

_FILES = """
import json, os, sys
asked = json.load(sys.stdin)
texts = [text.encode() for text in asked["texts"]]
kept = "ext2 ext3 ext4 xfs btrfs zfs f2fs overlay tmpfs ramfs".split()
mounts = {line.split()[1].replace("\\\\040", " "): line.split()[2] for line in open("/proc/mounts")}
roots = [place for place, kind in mounts.items() if kind in kept]
found, looked = [], 0
for root in roots:
    for folder, folders, names in os.walk(root):
        folders[:] = [one for one in folders if os.path.join(folder, one) not in mounts]
        for name in names:
            path = os.path.join(folder, name)
            try:
                status = os.lstat(path)
                if status.st_mode >> 12 != 8 or status.st_size > 1 << 28:
                    continue
                if max(status.st_mtime, status.st_ctime) < asked["since"]:
                    continue
                looked += 1
                content = open(path, "rb").read()
            except OSError:
                continue
            if any(text in content for text in texts):
                found.append([path, status.st_mode & 0o7777, status.st_uid])
json.dump({"found": found, "looked": looked}, sys.stdout)
"""


@contextmanager
def command_lines(hosts: Sequence[AnyHost]) -> Iterator[dict[str, list[str]]]:
    """The command lines that are seen on each host meanwhile; complete when the block has ended."""
    seen: dict[str, list[str]] = {}
    program, pipe = f"python3 -c {shlex.quote(_COMMAND_LINES)}", subprocess.PIPE
    watching = [(host, subprocess.Popen(host.command(program), stdin=pipe, stdout=pipe, text=True)) for host in hosts]
    try:
        yield seen
    finally:
        for host, process in watching:
            text, _ = process.communicate(timeout=60)
            seen[host.name] = json.loads(text)


def clock(host: AnyHost) -> float:
    """The host's own time of day."""
    return float(host.run("date +%s").stdout)


def files_with(host: AnyHost, texts: Sequence[str], *, since: float) -> tuple[list[tuple[str, int, int]], int]:
    """The files of a host's own file systems that have one of the texts in them, and in how many it was looked.

    Args:
        host: which.
        texts: what they shall not hold.
        since: seconds of the host's time of day; files that nobody has touched since are left out.

    Returns:
        Path, mode and owner of each.
    """
    asked = json.dumps({"texts": list(texts), "since": since})
    done = host.run(f"python3 -c {shlex.quote(_FILES)}", stdin=asked, timeout=1800)
    said = json.loads(done.stdout)
    return [(path, mode, owner) for path, mode, owner in said["found"]], said["looked"]
