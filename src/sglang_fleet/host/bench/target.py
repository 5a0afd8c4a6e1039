"""What a release says of how it can be measured: its venv, its address, its tokenizer, its user."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping

from ..activation.gate_spec import GateSpec
from ..activation.releases import UnusableError, load, parse_environment
from ..errors import HostError

if TYPE_CHECKING:
    from ..activation.layout import Layout
    from ..activation.releases import Release

_MODULES = ("sglang.bench_serving", "sglang.benchmark.serving")
"""Where SGLang has it: up to 0.5.23, where the first one is deprecated, and from some release on."""

_FOREIGN = ("SGLANG_FLEET_RELEASE", "SGLANG_LOGGING_CONFIG_PATH", "API_KEY")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@dataclass(frozen=True)
class Target:
    """A release that can be measured.

    Attributes:
        model: by which records are compared.
        url: where the server answers, from this host.
        tokenizer: the folder, or the name in the service's own cache.
        module: which of SGLang's modules measures.
        version: of SGLang; "" where the venv does not say.
        api_key: "" for none.
        secrets: every secret value of the release, to be masked.
    """

    unit: str
    user: str
    model: str
    url: str
    tokenizer: str
    python: str
    module: str
    version: str
    environment: Mapping[str, str] = field(repr=False)
    api_key: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    def words(self) -> list[str]:
        """Return the command without what is measured. No secret stands in it."""
        where = ("--base-url", self.url, "--model", self.tokenizer, "--tokenizer", self.tokenizer)
        # `nice`: the server's own processes come first.
        return ["nice", "-n", "10", self.python, "-m", self.module, "--backend", "sglang", *where]

    def variables(self, home: str) -> dict[str, str]:
        """Return the child's environment: the service's, but no GPU, no proxy, no network of Hugging Face's.

        A process that sees the GPUs makes a context on one: half a gigabyte that the server may not have to spare.
        Nothing is written outside of `home`.
        """
        left_out = {*_FOREIGN, *_PROXIES, *(name.upper() for name in _PROXIES)}
        kept = {name: value for name, value in self.environment.items() if name not in left_out}
        folders = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "HF_MODULES_CACHE", "HF_DATASETS_CACHE")
        return {
            **kept,
            **dict.fromkeys(folders, home),
            **dict.fromkeys(("NO_PROXY", "no_proxy"), "*"),
            **dict.fromkeys(("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"), "1"),
            "CUDA_VISIBLE_DEVICES": "",
            **({"OPENAI_API_KEY": self.api_key} if self.api_key else {}),
        }


def target_of(layout: Layout, name: str) -> Target:
    """Return how a release of this host is measured.

    Raises:
        HostError: it cannot be, with what to do about it.
    """
    try:
        release = load(layout, name)
        environment = parse_environment((layout.release(name) / "environment").read_text(errors="replace"))
    except UnusableError as error:
        raise HostError(str(error)) from None
    except OSError as error:
        raise HostError(f"{layout.release(name) / 'environment'} cannot be read: {error.strerror}") from None
    arguments = (release.manifest.get("spec") or {}).get("args") or {}
    _check(release, arguments)
    venv = str(release.manifest.get("venv") or "")
    module, version = _in_venv(venv, release=name)
    gate = GateSpec.of(release.manifest, api_key=release.secrets.get("api-key", ""))
    address = gate.question.hosts[0]
    return Target(
        unit=str(release.manifest.get("unit_name") or ""),
        user=str(release.manifest.get("user") or "root"),
        model=gate.proofs.model,
        url=f"http://{f'[{address}]' if ':' in address else address}:{gate.question.port}",
        tokenizer=str(arguments.get("tokenizer_path") or arguments.get("model_path") or ""),
        python=f"{venv}/bin/python",
        module=module,
        version=version,
        environment=environment,
        api_key=gate.question.api_key,
        secrets=tuple(release.secrets.values()),
    )


def _check(release: Release, arguments: Mapping[str, Any]) -> None:
    """Refuse what bench_serving cannot ask. Raises HostError."""
    replica = release.manifest.get("replica")
    rank = replica.get("rank") if isinstance(replica, dict) else 0
    if rank:
        hosts = replica.get("hosts") if isinstance(replica, dict) else None
        first = str(hosts[0]) if isinstance(hosts, list) and hosts else "the host of rank 0"
        raise HostError(f"this host is rank {rank} of a replica, and only rank 0 is asked", fix=f"measure {first}")
    if arguments.get("ssl_certfile"):
        raise HostError("the server speaks HTTPS, and sglang.bench_serving would have to trust its certificate")
    if arguments.get("skip_tokenizer_init"):
        raise HostError("the server has no tokenizer (skip_tokenizer_init), and sglang.bench_serving reads text")
    if arguments.get("is_embedding"):
        raise HostError("the server makes embeddings (is_embedding), and sglang.bench_serving counts generated tokens")


def _in_venv(venv: str, *, release: str) -> tuple[str, str]:
    """Return the module that measures, and SGLang's version. Raises HostError."""
    packages = next(iter(sorted(Path(venv).glob("lib/python3.*/site-packages"))), None)
    if packages is None:
        raise HostError(f"the venv of release {release} has no packages: {venv}")
    module = next((one for one in _MODULES if (packages / (one.replace(".", os.sep) + ".py")).is_file()), "")
    if not module:
        raise HostError(f"the SGLang of release {release} has no sglang.bench_serving: {venv}")
    if not (packages / "datasets").is_dir():
        raise HostError(
            f"the venv of release {release} has no package `datasets`, which {module} imports",
            fix="add `datasets` and what it needs to the file that sglang.requirements names, and deploy",
        )
    found = next(iter(sorted(packages.glob("sglang-*.dist-info"))), None)
    return module, found.name[len("sglang-") : -len(".dist-info")] if found else ""
