"""Whether a CUDA toolkit really works: it names the GPUs' architectures, and compiles for them.

What was seen to work is noted in STATE/cuda/verified-*.json, so that a later look costs one read; the note holds
for this very compiler only (its time and size), and is what the probe calls `toolkit_verified`.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..children import clean_environment, failure
from ..children import run as run_child
from ..errors import HostError
from ..files import digest_of, ensure_folder, remove_leftovers, remove_tree, storage, utc_now, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..children import Finished

VERIFYING = ".verifying-"
KERNEL = """\
__global__ void scale(float *values, float factor) {
  values[threadIdx.x] *= factor;
}
"""

_RELEASE = re.compile(r"release (\d+\.\d+), V([\d.]+)")
_NO_HOST_COMPILER = ("Failed to preprocess host compiler", "gcc: not found", "gcc: No such file", "cc1plus")


def verify(
    home: str,
    *,
    version: str,
    architectures: Sequence[str],
    state: str,
    until: float,
    say: Callable[[str], None],
) -> None:
    """Check the toolkit at `home` and note it; raises HostError saying what does not work.

    Only for the holder of the lock of STATE/cuda.
    """
    compiler = str(Path(home, "bin", "nvcc"))
    if not Path(compiler).is_file():
        raise HostError(f"there is no CUDA toolkit at {home}: {compiler} is missing", fix=_elsewhere())
    found = _version(compiler, until=until)
    # "13.0" is kept by 13.0.88; a version given in full has to be met in full.
    if not f"{found}.".startswith(f"{version}."):
        raise HostError(f"the CUDA toolkit at {home} is {found}, not {version}", fix=_elsewhere())
    _check_architectures(compiler, architectures, until=until)
    folder = str(Path(state, "cuda"))
    with storage(folder):
        ensure_folder(folder)
        _compile(compiler, architectures, folder, until=until)
        _note(home, compiler, version, architectures, folder)
    say(f"CUDA {found} at {home} compiles for {', '.join(architectures) or 'the compiler default'}")


def _elsewhere() -> str:
    """Return what helps when a toolkit is not the one that is wanted."""
    return "set cuda.source to apt or wheels to have it installed, or cuda.home to where it is"


def _ask(arguments: Sequence[str], *, until: float, home: str = "/") -> Finished:
    """Run the compiler."""
    return run_child(arguments, until=until, environment=clean_environment(home=home, TMPDIR=home))


def _version(compiler: str, *, until: float) -> str:
    """Return what the compiler says it is, like 13.0.88."""
    finished = _ask([compiler, "--version"], until=until)
    matched = _RELEASE.search("\n".join(finished.lines))
    if finished.status != 0 or finished.timed_out or matched is None:
        raise failure(f"{compiler} --version", finished, fix="the toolkit is damaged: install it again")
    return matched.group(2)


def _check_architectures(compiler: str, architectures: Sequence[str], *, until: float) -> None:
    """Check that the compiler names every architecture; 120a and 120f are variants of 120."""
    finished = _ask([compiler, "--list-gpu-arch"], until=until)
    if finished.status != 0 or finished.timed_out:
        raise failure(f"{compiler} --list-gpu-arch", finished, fix="the toolkit is damaged: install it again")
    known = [line.strip() for line in finished.lines if line.strip()]
    missing = [name for name in architectures if f"compute_{name.rstrip('af')}" not in known]
    if missing:
        raise HostError(
            f"{compiler} does not know this host's GPUs: compute_{', compute_'.join(missing)} is not among "
            f"{', '.join(known)}",
            fix="set cuda.version to a newer toolkit",
        )


def _compile(compiler: str, architectures: Sequence[str], folder: str, *, until: float) -> None:
    """Compile a kernel in a folder of its own, gone afterwards."""
    remove_leftovers(folder, VERIFYING)
    place = tempfile.mkdtemp(prefix=VERIFYING, dir=folder)
    try:
        source, result = Path(place, "kernel.cu"), Path(place, "kernel.o")
        source.write_text(KERNEL, encoding="ascii")
        codes = [f"-gencode=arch=compute_{name},code=sm_{name}" for name in architectures]
        finished = _ask([compiler, *codes, "-c", str(source), "-o", str(result)], until=until, home=place)
        if finished.status != 0 or finished.timed_out or not result.is_file():
            lacks_host_compiler = any(sign in line for line in finished.lines for sign in _NO_HOST_COMPILER)
            fix = "install g++ on this host: nvcc needs it" if lacks_host_compiler else "see the compiler's words"
            raise failure(f"compiling a kernel for {', '.join(architectures)} with {compiler}", finished, fix=fix)
    finally:
        remove_tree(place)


def _note(home: str, compiler: str, version: str, architectures: Sequence[str], folder: str) -> None:
    """Write down that this very compiler was seen to work."""
    seen = Path(compiler).stat()
    note = {
        "schema": 1,
        "home": home,
        "version": version,
        "architectures": sorted(architectures),
        "nvcc_mtime_ns": seen.st_mtime_ns,
        "nvcc_size": seen.st_size,
    }
    name = f"verified-{digest_of(json.dumps(note, sort_keys=True).encode())}.json"
    text = json.dumps({**note, "verified_at": utc_now()}, indent=1) + "\n"
    write_atomically(str(Path(folder, name)), text.encode())
