"""What several nodes ask of one service: of its settings alone, whatever the inventory's groups are.

What SGLang does with them is said where it is: srt/entrypoints/engine.py, `_calculate_rank_ranges`; srt/server_args.py,
`PortArgs`; srt/arg_groups/validation_hook.py (0.5.23; srt/server_args.py in older ones).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.spec.findings import Finding
from sglang_fleet.spec.replicas import FILLED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sglang_fleet.spec.service import Service

_FILLED = {*FILLED, "nccl_init_addr"}
_FLAGS = {f"--{argument.replace('_', '-')}" for argument in _FILLED}
_DP_ATTENTION_PORTS = 6
"""With DP attention the processes of all nodes meet at as many ports behind the rendezvous."""


def several_nodes(found: Mapping[str, Service]) -> Iterator[Finding]:
    """Every check of services of several nodes, and of what asks for some without `nodes`."""
    for name, service in found.items():
        yield from _written(name, service)
        yield from _gpus(name, service)
        if service.nodes > 1:
            yield from _group(name, service)
            yield from _cut(name, service)
            yield from _copies(name, service)
            yield from _ports(name, service, found)


def gpus_per_host(service: Service) -> int:
    """The GPUs that the service takes of each of its hosts, without whole copies of the model (dp_size)."""
    return max(service.args.tp_size * service.args.pp_size // max(service.nodes, service.args.nnodes), 1)


def _written(name: str, service: Service) -> Iterator[Finding]:
    """Arguments that this tool fills in, written by hand."""
    at, args = ("services", name, "args"), service.args
    if service.nodes > 1:
        for argument in dict(args.ordered()):
            if argument in _FILLED:
                yield Finding((*at, argument), "is filled in for each host, since nodes is set", "remove it")
        flags = [word for word in service.extra_args if word.partition("=")[0] in _FLAGS]
        if flags:
            message = f"has {flags[0].partition('=')[0]}, which is filled in for each host, since nodes is set"
            yield Finding(("services", name, "extra_args"), message, "remove it")
        return
    if args.nnodes > 1:
        fix = f"remove it, and write nodes: {args.nnodes} and group: GROUP beside args"
        yield Finding((*at, "nnodes"), f"asks for {args.nnodes} nodes, and cannot say which hosts they are", fix)
    if args.node_rank >= args.nnodes:
        message = f"must be less than nnodes ({args.nnodes}), got {args.node_rank}"
        yield Finding((*at, "node_rank"), message, "remove it")


def _gpus(name: str, service: Service) -> Iterator[Finding]:
    args, nodes = service.args, service.nodes
    needed = gpus_per_host(service)
    if service.gpus is None or needed <= len(service.gpus) or args.nnodes > 1:
        return
    product = f"tp_size {args.tp_size} times pp_size {args.pp_size}"
    shared = f" on {nodes} nodes is {needed} for each" if nodes > 1 else f" is {needed}"
    yield Finding(
        ("services", name, "gpus"),
        f"names {len(service.gpus)} GPUs; {product}{shared}",
        "name more GPUs, or lower tp_size or pp_size",
    )


def _group(name: str, service: Service) -> Iterator[Finding]:
    if service.group is None:
        message = f"is needed, since nodes is {service.nodes}"
        fix = "name the group of the inventory whose hosts run the service together"
        yield Finding(("services", name, "group"), message, fix)


def _cut(name: str, service: Service) -> Iterator[Finding]:
    """SGLang gives a node whole stages, or a stage to several nodes, each with an equal part of its ranks."""
    tensor, stages, nodes = service.args.tp_size, service.args.pp_size, service.nodes
    at = ("services", name, "nodes")
    if stages % nodes and nodes % stages:
        message = f"is {nodes}, and pp_size {stages} cannot be cut among them: neither number divides the other"
        yield Finding(at, message, f"make pp_size a multiple of {nodes}, or a divisor")
    elif tensor % max(nodes // stages, 1):
        share = nodes // stages
        message = f"is {nodes}, and tp_size {tensor} cannot be cut among {share} nodes of a stage"
        yield Finding(at, message, f"make tp_size a multiple of {share}")


def _copies(name: str, service: Service) -> Iterator[Finding]:
    args = dict(service.args.ordered())
    if service.args.dp_size > 1 and not args.get("enable_dp_attention"):
        message = f"is {service.args.dp_size}: SGLang runs no whole copies of the model across nodes"
        yield Finding(("services", name, "args", "dp_size"), message, "remove it, or use DP attention")


def _ports(name: str, service: Service, found: Mapping[str, Service]) -> Iterator[Finding]:
    """Rank 0 waits at a port of its own."""
    taken, at = _meeting(service), ("services", name, "rendezvous_port")
    for other, its in found.items():
        port = its.args.port
        if port in taken:
            whose = "the service's own" if other == name else f"{other}'s"
            yield Finding(at, f"{_said(taken, port)} {whose} port too: {port}", "choose another")
        if other > name and its.nodes > 1 and (shared := set(taken) & set(_meeting(its))):
            yield Finding(
                ("services", other, "rendezvous_port"),
                f"{_said(_meeting(its), min(shared))} {name}'s rendezvous too: {min(shared)}",
                "choose another",
            )


def _meeting(service: Service) -> range:
    """The ports at which the nodes of a service meet, on rank 0."""
    args = dict(service.args.ordered())
    groups = args.get("attn_dp_size")
    has_groups = bool(args.get("enable_dp_attention")) or (isinstance(groups, int) and groups > 1)
    return range(service.rendezvous_port, service.rendezvous_port + 1 + _DP_ATTENTION_PORTS * has_groups)


def _said(ports: range, port: int) -> str:
    return "is" if port == ports[0] else f"takes {len(ports)} ports with DP attention, and one is"
