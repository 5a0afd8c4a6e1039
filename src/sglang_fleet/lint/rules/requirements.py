"""The lock file: which packages the environment of SGLang will have."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from sglang_fleet.lint.found import Found
from sglang_fleet.lint.rule import service_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_fleet.lint.views import ServiceView

_AT = "sglang.requirements"
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*==\s*([^\s;\\]+)", re.MULTILINE)
_OF_CUDA = re.compile(r"nvidia-(?P<name>[a-z0-9-]+)-cu(?P<major>1[0-9])")
_BUILT_FOR = re.compile(r"\+cu(?P<major>1[0-9])[0-9]")
# They bring libraries for both majors on purpose, each in a package of its own.
_FOR_BOTH = frozenset({"cutlass-dsl-libs"})
_KERNELS = ("sgl-kernel", "sglang-kernel")


@lru_cache(maxsize=8)
def pins(text: str) -> Mapping[str, str]:
    """The version of each package that a lock file pins, by its normal name."""
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in _PIN.findall(text)}


@lru_cache(maxsize=8)
def cuda_majors(lock: str | None) -> Mapping[str, str]:
    """A package that shows it, by each major version of CUDA that a lock file has packages for."""
    found: dict[str, str] = {}
    for name, version in pins(lock or "").items():
        of_cuda, built = _OF_CUDA.fullmatch(name), _BUILT_FOR.search(version)
        if of_cuda and of_cuda["name"] not in _FOR_BOTH:
            found.setdefault(of_cuda["major"], name)
        elif built and name in ("torch", *_KERNELS):
            found.setdefault(built["major"], f"{name} {version}")
    return found


@service_rule("SGL350", "error")
def lock_of_another_release(view: ServiceView) -> Iterator[Found]:
    """The lock file pins another SGLang release.

    Why: sglang.version says which release to install, check arguments against and prove on the host;
    sglang.requirements is what is installed. A host compares both after the installation, and goes no further.

    Evidence: the lock file; docs/settings.md, "sglang".

    Fix: Make the lock file again for sglang.version, or correct sglang.version.
    """
    pinned = pins(view.lock or "").get("sglang")
    if pinned is not None and pinned.partition("+")[0] != view.version:
        yield Found(
            _AT,
            f"pins sglang {pinned}, and sglang.version is {view.version}",
            "make the lock file again for that version, or correct sglang.version",
        )


@service_rule("SGL351", "warning")
def lock_of_two_cudas(view: ServiceView) -> Iterator[Found]:
    """The lock file mixes packages for two major versions of CUDA.

    Why: PyTorch, SGLang's kernels and NVIDIA's libraries are built for one major version of CUDA each. Two of them in
    one environment load two sets of the same libraries, or miss one: mostly "undefined symbol" or a missing
    libcudart at the start. It comes from a lock file that was made in steps, or with two indexes.

    Evidence: the names of NVIDIA's packages end with the major version (nvidia-cudnn-cu12, nvidia-cudnn-cu13), and
    versions built for one end with it (torch 2.9.1+cu130). nvidia-cutlass-dsl-libs comes for both on purpose.

    Fix: Make the lock file again from scratch, with one index.
    """
    majors = cuda_majors(view.lock)
    if len(majors) > 1:
        named = ", ".join(f"CUDA {major} ({majors[major]})" for major in sorted(majors))
        yield Found(_AT, f"has packages for {named}", "make the lock file again from scratch, with one index")


@service_rule("SGL352", "warning")
def toolkit_of_another_cuda(view: ServiceView) -> Iterator[Found]:
    """The toolkit and the packages are of two major versions of CUDA.

    Why: Kernels that are compiled on the host with the toolkit are linked against the libraries that the packages
    bring. With another major version they do not load. SGL324 says so where the release alone tells it.

    Evidence: as SGL351; sglang#29646, #18203, #10951.

    Fix: Set cuda.version to that of the packages, or make the lock file again for the toolkit.
    """
    majors, toolkit = cuda_majors(view.lock), view.deployment.cuda.version.partition(".")[0]
    is_said = view.since("0.5.20") and toolkit == "12"
    if len(majors) == 1 and toolkit not in majors and not is_said:
        ((major, package),) = majors.items()
        yield Found(
            "cuda.version",
            f"is {view.deployment.cuda.version}, and the lock file has packages for CUDA {major} ({package})",
            f"set cuda.version to {major}.x, or make the lock file again for CUDA {toolkit}",
        )
