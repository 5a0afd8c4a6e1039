"""Kernels for matrices, and what they are compiled with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.found import Found, Set
from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import TRTLLM_MOE, architecture, capability
from sglang_fleet.lint.rules.requirements import cuda_majors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.views import ServiceView

_MOST_JOBS = 64
_SM12X = 12
_FIRST_CUDA_FOR_SM12X = (12, 9)
_LAST_CUDA_12_LANE = 13
# The least compute capability, times ten, of a quantization that is asked for by name.
_LEAST = {
    "fp8": 80, "mxfp8": 100, "nvfp4_online": 100, "modelopt_fp4": 80, "modelopt_fp8": 89, "w8a8_fp8": 89,
    "w8a8_int8": 75, "w4afp8": 90, "awq": 75, "awq_marlin": 80, "gptq": 60, "gptq_marlin": 80, "mxfp4": 80,
}  # fmt: skip


def _fp8_generations(view: ServiceView, backend: object) -> frozenset[int] | None:
    """The major compute capabilities of a backend for FP8 matrices; None: any, or not known here."""
    known = {
        "flashinfer_trtllm": frozenset({10} if view.since("0.5.10") else {10, 11, 12}),
        "flashinfer_cutlass": frozenset({10, 11, 12}),
        "flashinfer_deepgemm": frozenset({9}),
        "deep_gemm": frozenset({9, 10, 11, 12} if view.since("0.5.21") else {9, 10}),
        "aiter": frozenset[int](),
    }
    if view.since("0.5.16"):
        known["cutlass"] = frozenset({12})
    return known.get(str(backend))


@service_rule("SGL320", "warning", needs="host")
def fp8_kernels_for_other_gpus(view: ServiceView) -> Iterator[Found]:
    """fp8_gemm_backend is not for these GPUs.

    Why: fp8_gemm_backend names kernels for certain GPUs: flashinfer_trtllm for SM100 (from 0.5.10), flashinfer_cutlass
    for Blackwell, flashinfer_deepgemm for Hopper, cutlass from 0.5.16 for SM120, deep_gemm for Hopper and SM100.
    On other GPUs SGLang stops while it loads an FP8 model. For a model that is not FP8 the setting does nothing.

    Evidence: sglang 0.5.9 to 0.5.23 srt/layers/quantization/fp8_utils.py, _dispatch_explicit_backend;
    srt/layers/deep_gemm_wrapper/configurer.py.

    Fix: Remove fp8_gemm_backend: auto chooses by the GPU. triton runs on all of them.
    """
    found, backend = capability(view), view.value("fp8_gemm_backend")
    allowed = _fp8_generations(view, backend)
    if found is not None and allowed is not None and found[0] not in allowed:
        yield view.found(
            "fp8_gemm_backend", f"{backend} does not run on {architecture(view)}", "remove it, or write triton"
        )


@service_rule("SGL321", "error", needs="host")
def quantization_for_newer_gpus(view: ServiceView) -> Iterator[Found]:
    """The quantization needs newer GPUs.

    Why: SGLang compares the GPU's compute capability with the least one of the quantization, and stops while it loads
    the model.

    Evidence: sglang 0.5.9 to 0.5.23 srt/model_loader/loader.py, and get_min_capability in srt/layers/quantization.

    Fix: Use a model with another quantization, or other GPUs.
    """
    found, method = capability(view), view.value("quantization")
    least = _LEAST.get(str(method), 0)
    if method == "modelopt_fp4" and not view.since("0.5.13"):
        least = 100
    if found is not None and found[0] * 10 + found[1] < least:
        yield view.found(
            "quantization",
            f"{method} needs SM{least} or newer; these GPUs are {architecture(view)}",
            "use another model, or other GPUs",
        )


@service_rule("SGL322", "warning", needs="host")
def experts_for_other_gpus(view: ServiceView) -> Iterator[Found]:
    """The kernels are for SM100 (B200, B300) only.

    Why: TensorRT-LLM's kernels for a mixture of experts and for FP4 matrices are built for SM100 and SM103 (B200,
    B300). SGLang chooses them on SM100 only, and takes a written one as it is: the first step fails.

    Evidence: sglang 0.5.9 to 0.5.23: flashinfer_trtllm is the choice "on sm100" in every model; flashinfer#2847: the
    kernels for experts check for SM10x; flashinfer#2577: trtllm "with capability 120" is refused for FP4.

    Fix: Remove the setting: auto chooses by the GPU. On SM120 and Hopper triton, flashinfer_cutlass or marlin run, by
    quantization.
    """
    found = capability(view)
    if found is None or found[0] == 10:  # noqa: PLR2004  # SM100
        return
    if view.value("moe_runner_backend") in TRTLLM_MOE:
        yield view.found(
            "moe_runner_backend",
            f"{view.value('moe_runner_backend')} is for SM100; these GPUs are {architecture(view)}",
            "remove it",
        )
    if view.value("fp4_gemm_backend") == "flashinfer_trtllm":
        yield view.found(
            "fp4_gemm_backend", f"flashinfer_trtllm is for SM100; these GPUs are {architecture(view)}", "remove it"
        )


@service_rule("SGL323", "warning", needs="host")
def cuda_too_old_for_gpus(view: ServiceView) -> Iterator[Found]:
    """The CUDA toolkit is older than these GPUs.

    Why: FlashInfer compiles its kernels on the host, and takes GPUs of SM12x only with CUDA 12.9 or newer. Its message
    is misleading: that it needs GPUs of SM75 or higher.

    Evidence: FlashInfer's compilation context: "SM 12.x requires CUDA >= 12.9"; vllm#50705.

    Fix: Set cuda.version to "13.0", with a driver of 580 or newer.
    """
    found, version = capability(view), view.deployment.cuda.version
    major, minor = map(int, version.split("."))
    if found is not None and found[0] == _SM12X and (major, minor) < _FIRST_CUDA_FOR_SM12X:
        yield Found(
            "cuda.version",
            f"FlashInfer compiles for {architecture(view)} from CUDA 12.9, not with {version}",
            'set cuda.version to "13.0"',
        )


@service_rule("SGL324", "warning")
def cuda_older_than_packages(view: ServiceView) -> Iterator[Found]:
    """The toolkit is CUDA 12, and the release is built with CUDA 13.

    Why: From 0.5.20 SGLang's packages are built with CUDA 13. Kernels that are compiled on the host with a toolkit of
    CUDA 12 are linked against libraries of another major version: loading them fails, mostly with a missing libnvrtc.
    Nothing is said where the lock file has packages for CUDA 12 only.

    Evidence: SGLang's documentation: 0.5.19 is the last release with CUDA 12. sglang#29646, #18203, #10951.

    Fix: Set cuda.version to "13.0" and cuda.minimum_driver to 580, or stay with SGLang 0.5.19.
    """
    version = view.deployment.cuda.version
    is_locked_for_it = set(cuda_majors(view.lock)) == {version.partition(".")[0]}
    if view.since("0.5.20") and int(version.partition(".")[0]) < _LAST_CUDA_12_LANE and not is_locked_for_it:
        yield Found(
            "cuda.version",
            f"SGLang {view.version} is built with CUDA 13; kernels compiled with {version} will not load",
            'set cuda.version to "13.0" and cuda.minimum_driver to 580',
        )


@service_rule("SGL325", "warning")
def toolkit_set_by_hand(view: ServiceView) -> Iterator[Found]:
    """A variable replaces what the release sets for its CUDA toolkit.

    Why: A release names one toolkit, by its versioned folder, and sets CUDA_HOME and PATH to it. A variable of the
    same name wins. /usr/local/cuda moves with the next installation, and kernels are then compiled with something else
    than what was proven. A PATH of your own
    lacks nvcc, ninja and the programs of the venv: FlashInfer then fails after long tries.

    Evidence: flashinfer PR#3386: three times 900 seconds lost without ninja on PATH. systemd.exec(5): no profile is
    read.

    Fix: Remove the variable, and set cuda.version or cuda.home.
    """
    cuda = view.deployment.cuda
    for name in ("CUDA_HOME", "CUDA_PATH", "PATH"):
        value = view.environment.get(name)
        if value is not None and (cuda.source == "wheels" or name == "PATH" or value != cuda.home_path):
            yield view.found_at(
                f"environment.{name}", "replaces what the release sets for its CUDA toolkit and its venv", "remove it"
            )


@service_rule("SGL326", "warning")
def compiler_jobs(view: ServiceView) -> Iterator[Found]:
    """MAX_JOBS does not limit the compiler.

    Why: Kernels are compiled at the start, in MAX_JOBS compilers at once, each of which takes gigabytes of the host's
    memory. Without a limit, or with a large one, Linux kills the server when memory runs out.

    Evidence: flashinfer#4410. The server gets MAX_JOBS=8 when nothing is written.

    Fix: Remove MAX_JOBS, or write a number that the host's memory allows: about 4 GB for each.
    """
    jobs = view.environment.get("MAX_JOBS")
    if jobs is not None and not (jobs.isdecimal() and 0 < int(jobs) <= _MOST_JOBS):
        yield view.found_at(
            "environment.MAX_JOBS", f"is {jobs!r}, which is no limit", "remove it: the server then gets MAX_JOBS=8"
        )


def _is_fp8(view: ServiceView) -> bool:
    """Whether the weights are known to be FP8, by config.json, the settings or the model's name."""
    if view.value("quantization") == "fp8" or (view.model is not None and view.model.quantization == "fp8"):
        return True
    return view.model is None and "fp8" in view.service.args.model_path.lower()


@service_rule("SGL327", "warning", needs="host")
def deep_gemm_without_kernels(view: ServiceView) -> Iterator[Found]:
    """DeepGEMM has no kernels for these GPUs.

    Why: 0.5.12 and older use DeepGEMM on every GPU from SM90 on, also on SM120, for which it had no kernels then: FP8
    models fail at the first step. Up to 0.5.20 the same holds for SM121. Nothing is said of a model that is not known
    to be FP8.

    Evidence: sglang 0.5.9, 0.5.12, 0.5.13, 0.5.20 and 0.5.21 srt/layers/deep_gemm_wrapper/configurer.py; DeepGEMM#305.

    Fix: Set SGLANG_ENABLE_JIT_DEEPGEMM to 0, or use a newer release.
    """
    found, variable = capability(view), "SGLANG_ENABLE_JIT_DEEPGEMM"
    is_missing = (found == (12, 0) and not view.since("0.5.13")) or (found == (12, 1) and not view.since("0.5.21"))
    if is_missing and variable not in view.environment and _is_fp8(view):
        key = f"services.{view.service.name}.environment.{variable}"
        yield view.found_at(
            f"environment.{variable}",
            f"DeepGEMM has no kernels for {architecture(view)}, and SGLang {view.version} uses it for FP8 models",
            "set it to 0",
            edits=(Set(key, "0"),),
        )
