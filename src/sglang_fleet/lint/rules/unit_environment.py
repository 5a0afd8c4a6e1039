"""systemd units: what a server finds in its environment. They hold for every unit that is rendered here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import unit_rule
from sglang_fleet.lint.unit_values import option
from sglang_fleet.masking import is_sensitive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import UnitView

_CACHES = ("XDG_CACHE_HOME", "FLASHINFER_WORKSPACE_BASE", "TRITON_CACHE_DIR")
_TRUE = ("1", "true", "yes", "on")
_NAME = re.compile(r"(?:^|\s)[\"']?([A-Za-z_][A-Za-z0-9_]*)=")


def interpreter(view: UnitView) -> str:
    """The folder of the interpreter that ExecStart names; empty where it names none by its path."""
    program = view.words[0].lstrip("@-:+!") if view.words else ""
    return program.rpartition("/")[0] if program.startswith("/") else ""


@unit_rule("SGL630", "warning")
def path_without_compilers(view: UnitView) -> Iterator[Found]:
    """The server does not find its compilers.

    Why: SGLang and FlashInfer compile kernels while they run: they need ninja, which is in the venv, and nvcc. systemd
    reads no profile, so PATH has to name the venv's bin and CUDA's, before anything else that could hold others.

    Evidence: flashinfer PR#3386: without nvcc on the service's PATH three compilations of 900 s were lost.

    Fix: Environment=PATH=<venv>/bin:<CUDA_HOME>/bin:/usr/local/bin:/usr/bin:/bin
    """
    folders = [folder.rstrip("/") for folder in view.environment.get("PATH", "").split(":") if folder]
    home = view.environment.get("CUDA_HOME", "").rstrip("/")
    venv = interpreter(view)
    missing = []
    if venv and venv not in ("/usr/bin", "/usr/local/bin") and folders[:1] != [venv]:
        missing.append(f"{venv} first")
    if not any(folder == f"{home}/bin" if home else "cuda" in folder.lower() for folder in folders):
        missing.append(f"{home}/bin" if home else "CUDA's bin")
    if missing:
        yield view.found(
            f"PATH lacks {' and '.join(missing)}: kernels that are compiled while the server runs need both",
            "set PATH: the venv's bin, then CUDA's, then the system's",
        )


@unit_rule("SGL631", "warning")
def cuda_home_that_moves(view: UnitView) -> Iterator[Found]:
    """CUDA_HOME is not set, or may point elsewhere tomorrow.

    Why: Kernels are compiled against the toolkit in CUDA_HOME. /usr/local/cuda is a link that the next installation
    of any toolkit moves; then a restart compiles against another version than the one the server was proven with.

    Evidence: NVIDIA's packages set the link /usr/local/cuda with update-alternatives; toolkits of several versions
    live side by side in /usr/local/cuda-<version>.

    Fix: CUDA_HOME=/usr/local/cuda-13.0
    """
    home = view.environment.get("CUDA_HOME", "").rstrip("/")
    if home in ("", "/usr/local/cuda"):
        said = "is /usr/local/cuda, a link that the next toolkit moves" if home else "is not set"
        yield view.found(f"CUDA_HOME {said}", "name the versioned folder, /usr/local/cuda-13.0")


@unit_rule("SGL632", "warning")
def no_home(view: UnitView) -> Iterator[Found]:
    """HOME is not set.

    Why: systemd sets HOME only where the unit has User=. Without it what looks for ~/.cache and ~/.triton fails, or
    writes where nobody expects it.

    Evidence: systemd.exec(5), "Environment Variables Set or Propagated by the Service Manager".

    Fix: Set HOME, to a folder that the account may write to.
    """
    if not view.environment.get("HOME") and not view.last("Service", "User"):
        yield view.found(
            "HOME is not set, and without User= systemd sets none", "set HOME to a folder that the server may write to"
        )


@unit_rule("SGL633", "note")
def caches_outlive_the_venv(view: UnitView) -> Iterator[Found]:
    """Kernels compiled for one release are used by the next.

    Why: Compiled kernels lie in ~/.cache when nothing else is said, and stay there through an upgrade. Kernels of
    other versions have led to wrong results and failed loads; a cache for each venv starts empty.

    Evidence: FlashInfer and Triton read FLASHINFER_WORKSPACE_BASE, TRITON_CACHE_DIR and XDG_CACHE_HOME; sglang#10891:
    FlashInfer's packages and its compiled kernels have to be of one version.

    Fix: Set XDG_CACHE_HOME, FLASHINFER_WORKSPACE_BASE and TRITON_CACHE_DIR to folders that belong to this venv.
    """
    if not any(view.environment.get(name) for name in _CACHES):
        yield view.found(
            "compiled kernels lie in the home, and outlive an upgrade",
            f"set {', '.join(_CACHES)} to a folder of the venv's",
        )


@unit_rule("SGL634", "note")
def unbounded_compilation(view: UnitView) -> Iterator[Found]:
    """Compilation may take all of the host's memory.

    Why: Ninja starts as many compilers as the host has CPUs, and each of CUDA's takes gigabytes: on a host with 128
    cores the server, or a neighbour, is killed for want of memory.

    Evidence: flashinfer PR#4410.

    Fix: MAX_JOBS=8
    """
    if not view.environment.get("MAX_JOBS"):
        yield view.found("MAX_JOBS is not set: a compilation starts a compiler for each CPU", "MAX_JOBS=8")


@unit_rule("SGL635", "note")
def hub_asked_for_a_local_model(view: UnitView) -> Iterator[Found]:
    """The server may ask the model hub, and its model is on the host.

    Why: With a model that is a folder nothing has to be fetched. A server that may ask the hub nevertheless waits for
    it where there is no way out, and may fetch over a model that it takes for broken.

    Evidence: sglang#14754; huggingface_hub, HF_HUB_OFFLINE.

    Fix: HF_HUB_OFFLINE=1
    """
    model = option(view.words, "--model-path", "--model")
    if model.startswith("/") and view.environment.get("HF_HUB_OFFLINE", "").lower() not in _TRUE:
        yield view.found("the model is on the host, and the server may still ask the hub", "HF_HUB_OFFLINE=1")


@unit_rule("SGL636", "warning")
def secret_in_unit(view: UnitView) -> Iterator[Found]:
    """A secret stands in the unit.

    Why: Everyone on the host can read a unit, and the words of a process's command line.

    Evidence: proc(5), /proc/pid/cmdline; systemd.exec(5), Environment: "not suitable for passing secrets".

    Fix: A key goes into a file that --config names, readable to the server only; a variable into a file with mode 0600
    that EnvironmentFile= names. Then change the secret.
    """
    flags = [word.partition("=")[0] for word in view.words if word.startswith("--")]
    found = [flag for flag in flags if is_sensitive(flag) and option(view.words, flag)]
    for line in view.values("Service", "Environment"):
        found += [name for name in _NAME.findall(line) if is_sensitive(name) and view.environment.get(name)]
    for name in dict.fromkeys(found):
        yield view.found(
            f"the value of {name} stands here, and everyone on the host can read it",
            "move it to a file that only the server may read, and change the secret",
        )
