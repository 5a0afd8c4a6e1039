"""`sglang-fleet sizing`: what a service's weights and KV cache take, and how many tokens fit."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

import click

from sglang_fleet.cli.answering import AnsweringCommand
from sglang_fleet.cli.common import (
    CLEAN,
    ERRORS,
    data_option,
    examples,
    inventory_argument,
    json_option,
    load_settings,
    problem_json,
    show_notes,
    show_problems,
    write_json,
)
from sglang_fleet.cli.models import find_model, missing_model, models_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from sglang_fleet.lint.views import ServiceView
    from sglang_fleet.models import ModelFacts
    from sglang_fleet.models.weights import Weights
    from sglang_fleet.problems import Problem
    from sglang_fleet.sizing import CannotFit, Sizing
    from sglang_fleet.spec import Loaded

_UNITS = {"gib": 1 << 30, "mib": 1 << 20}


class _Memory(click.ParamType[int]):
    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?) ?(gib|mib)", str(value).strip().lower())
        memory = int(float(found[1]) * _UNITS[found[2]]) if found else 0
        if memory <= 0:
            self.fail(f"{value!r} is no amount of memory: write it like 96GiB or 97887MiB.", param, ctx)
        return memory


@dataclass(frozen=True, slots=True)
class Sized:
    """One service of some hosts.

    Attributes:
        service: its name.
        hosts: the hosts that run it with these settings.
        model: model_path as written.
        folder: where the model was read; None: it was not found here.
        facts: what it says; None: not found, or not readable.
        sizing: the sizes; None likewise.
        failure: why there are none; empty when there are.
        problems: what does not fit.
        refused: what SGLang would refuse of it, by the rules that need to see the model: (rule, key, message).
    """

    service: str
    hosts: tuple[str, ...]
    model: str
    folder: Path | None = None
    facts: ModelFacts | None = None
    sizing: Sizing | None = None
    failure: str = ""
    problems: tuple[CannotFit, ...] = ()
    refused: tuple[tuple[str, str, str], ...] = ()


@dataclass(slots=True)
class _Models:
    """The models that can be read here, each read once."""

    known: dict[Path, tuple[ModelFacts, Weights | None]] = field(default_factory=dict)

    def read(self, folder: Path) -> tuple[ModelFacts, Weights | None]:
        """Facts and weights. Raises ModelUnreadable."""
        from sglang_fleet.models import read_facts  # noqa: PLC0415  # --help needs none of it
        from sglang_fleet.models.weights import read_weights  # noqa: PLC0415  # as above

        if folder not in self.known:
            facts = read_facts(folder)
            self.known[folder] = facts, read_weights(folder, facts)
        return self.known[folder]


def _result(found: Sequence[Sized], problems: Sequence[Problem]) -> dict[str, object]:
    return {"services": [_json(one) for one in found], "problems": [problem_json(problem) for problem in problems]}


def _unanswered(_params: Mapping[str, Any], problems: Sequence[Problem]) -> dict[str, object]:
    return _result((), problems)


@click.command(
    "sizing",
    cls=AnsweringCommand,
    unanswered=_unanswered,
    epilog=examples(
        "sglang-fleet sizing inventory/prod.py --models models --gpu-memory 96GiB",
        "sglang-fleet sizing inventory/prod.py --json",
    ),
)
@inventory_argument
@models_option("; with the weights' index, or the weights themselves, the sizes get exact")
@click.option(
    "--gpu-memory",
    type=_Memory(),
    metavar="SIZE",
    help="Memory of one GPU in GiB or MiB, as nvidia-smi shows it: 97887MiB. Without it, no number of tokens.",
)
@data_option
@json_option
def command(inventory: str, models: Path | None, gpu_memory: int | None, data: Sequence[str], *, as_json: bool) -> None:
    """Say what weights and KV cache take, and what fits.

    Read from the model's config.json and its weights' index, which must be on this machine: at model_path itself, or
    in --models. No connection is made. What had to be assumed is said.
    """
    settings = load_settings(inventory, data=data)
    show_notes(settings)
    found = sized(settings.loaded, models=models, gpu_memory=gpu_memory)
    problems = settings.loaded.problems
    if problems:
        show_problems(problems)
    if as_json:
        write_json(_result(found, problems))
    else:
        from sglang_fleet.cli.sizing_text import shown  # noqa: PLC0415  # JSON needs none of it

        click.echo("\n".join(shown(one) for one in found), nl=False)
    is_bad = problems or any(one.failure or any(found.is_certain for found in one.problems) for one in found)
    raise SystemExit(ERRORS if is_bad else CLEAN)


def sized(loaded: Loaded, *, models: Path | None, gpu_memory: int | None) -> list[Sized]:
    """Every service once for all hosts that run it with the same settings, in the inventory's order."""
    from sglang_fleet.catalog import nearest  # noqa: PLC0415  # --help needs none of it
    from sglang_fleet.lint.views import ServiceView  # noqa: PLC0415  # as above

    readable = _Models()
    hosts: dict[int, list[str]] = {}
    for host, deployment in loaded.deployments.items():
        hosts.setdefault(id(deployment), []).append(host)
    found: list[Sized] = []
    for names in hosts.values():
        deployment = loaded.deployments[names[0]]
        for service in deployment.services.values():
            view = ServiceView(deployment, service, nearest(deployment.sglang.version))
            one = Sized(service.name, tuple(names), service.args.model_path)
            found.append(_measured(one, readable, view, gpu_memory, models=models))
    return _merged(found)


def _measured(
    one: Sized, readable: _Models, view: ServiceView, gpu_memory: int | None, *, models: Path | None
) -> Sized:
    """The same with its sizes, or with the reason why there are none."""
    from sglang_fleet.models import ModelUnreadable  # noqa: PLC0415  # --help needs none of it
    from sglang_fleet.sizing import problems, size  # noqa: PLC0415  # as above

    folder = find_model(one.model, models)
    if folder is None:
        return replace(one, failure=missing_model(one.model, models))
    try:
        facts, weights = readable.read(folder)
    except ModelUnreadable as error:
        return replace(one, folder=folder, failure=str(error))
    sizing = size(
        facts, view.args, weights=weights, gpu_memory=gpu_memory, environment=view.environment, version=view.version
    )
    return replace(
        one,
        folder=folder,
        facts=facts,
        sizing=sizing,
        problems=problems(sizing, view.args),
        refused=tuple(_refused(replace(view, model=facts))),
    )


def _refused(view: ServiceView) -> Iterator[tuple[str, str, str]]:
    """The errors of the rules that look at settings and model; what lint says of the settings alone is its own."""
    from sglang_fleet.lint.rules import RULES  # noqa: PLC0415  # --help needs none of it

    for rule in RULES:
        if (rule.subject, rule.needs, rule.severity) == ("service", "model", "error"):
            for found in rule.check(view):
                yield rule.id, found.key.rpartition(".")[2], found.message


def _merged(found: list[Sized]) -> list[Sized]:
    """Those that differ in nothing but their hosts made one."""
    merged: list[Sized] = []
    for one in found:
        for place, other in enumerate(merged):
            if replace(one, hosts=()) == replace(other, hosts=()):
                merged[place] = replace(other, hosts=(*other.hosts, *one.hosts))
                break
        else:
            merged.append(one)
    return merged


def _json(one: Sized) -> dict[str, object]:
    facts, sizing = one.facts, one.sizing
    return {
        "service": one.service,
        "hosts": list(one.hosts),
        "model_path": one.model,
        "model_folder": str(one.folder) if one.folder else None,
        "failure": one.failure or None,
        "architecture": next(iter(facts.architectures), None) if facts else None,
        "quantization": facts.quantization if facts else None,
        **({} if sizing is None else _sizes(sizing)),
        "problems": [asdict(problem) for problem in one.problems],
        "refused": [{"rule": rule, "argument": argument, "message": said} for rule, argument, said in one.refused],
    }


def _sizes(sizing: Sizing) -> dict[str, object]:
    """Bytes and tokens; null is not known."""
    cache = sizing.cache
    return {
        "gpus": sizing.layout.gpus,
        "stages": [
            {
                "layers": len(stage.layers),
                "first_layer": stage.layers.start if stage.layers else None,
                "weights_bytes_per_gpu": stage.weights,
                "cache_bytes_per_token_per_gpu": stage.cache,
            }
            for stage in sizing.stages
        ],
        "weights_from": sizing.source,
        "cache": None if isinstance(cache, str) else {"kind": cache.kind, "dtype": cache.dtype},
        "cache_unknown_because": cache if isinstance(cache, str) else None,
        "gpu_memory_bytes": sizing.gpu_memory,
        "mem_fraction_static": sizing.fraction,
        "cache_bytes_per_gpu": sizing.budget,
        "bound": sizing.bound,
        "tokens": sizing.tokens,
        "schedulers": sizing.layout.schedulers,
        "context_length": sizing.context,
        "requests_of_full_context": sizing.full_requests,
        "requests_at_once": sizing.running,
        "assumptions": list(sizing.assumptions),
    }
