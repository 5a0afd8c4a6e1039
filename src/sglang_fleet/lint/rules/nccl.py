"""NCCL's variables: those that cancel each other out, and those that NCCL passes over without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.found import Remove, Set
from sglang_fleet.lint.rule import service_rule
from sglang_fleet.spec.nccl import Nccl, variable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

_PREFIX = "NCCL_"
_OF_INFINIBAND = ("ib_hca", "ib_gid_index", "ib_timeout", "ib_retry_cnt")
_EVERY_CALL = frozenset({"COLL", "CALL", "ALL"})
_FIELDS = {variable(name): name for name in Nccl.model_fields}
_ALIKE = 0.85  # NCCL_P2P_LEVL, and not NCCL_NET_LEVEL


def uses_nccl(view: ServiceView) -> bool:
    """Whether the server's GPUs talk to each other through NCCL at all: a single GPU has nobody to talk to."""
    return view.service.args.tp_size * view.service.args.pp_size > 1


@service_rule("SGL501", "warning")
def p2p_level_without_p2p(view: ServiceView) -> Iterator[Found]:
    """p2p_level has no effect: p2p_disable wins.

    Why: NCCL_P2P_DISABLE=1 turns direct transport between GPUs off, whatever level NCCL_P2P_LEVEL allows. Whoever
    reads the settings takes the level for what happens; every transfer goes through host memory instead.

    Evidence: NCCL 2.30.7, src/graph/paths.cc: P2P_DISABLE is looked at first.

    Fix: Remove p2p_level, or p2p_disable if direct transport is wanted.
    """
    nccl = view.service.nccl
    if nccl.p2p_disable and nccl.p2p_level is not None:
        yield view.found_at(
            "nccl.p2p_level",
            "has no effect: p2p_disable turns direct transport between GPUs off at every level",
            "remove it; or remove p2p_disable, if GPUs shall talk directly",
            edits=(Remove(f"services.{view.service.name}.nccl.p2p_level"),),
            safe=True,
        )


@service_rule("SGL502", "warning")
def gpus_talk_over_the_network(view: ServiceView) -> Iterator[Found]:
    """Both ways between the GPUs of one host are turned off.

    Why: Without direct transport (p2p_disable) and without shared memory (shm_disable) NCCL sends what two GPUs of
    the same host tell each other through the network stack. That is many times slower, and has been seen to fail.

    Evidence: NCCL's user guide, "NCCL_SHM_DISABLE": without it NCCL uses the network, InfiniBand or IP sockets.
    NVIDIA/nccl#406: a large loss with it. NVIDIA/nccl#2057: NCCL 2.29 fails on one host with both.

    Fix: Remove shm_disable.
    """
    nccl = view.service.nccl
    if nccl.p2p_disable and nccl.shm_disable and uses_nccl(view):
        yield view.found_at(
            "nccl.shm_disable",
            "with p2p_disable as well, GPUs of this host talk to each other over network sockets",
            "remove it",
            edits=(Remove(f"services.{view.service.name}.nccl.shm_disable"),),
        )


@service_rule("SGL503", "note")
def nccl_variable_in_environment(view: ServiceView) -> Iterator[Found]:
    """A variable of NCCL stands in environment, where nothing checks it.

    Why: `nccl` has a field for it. There its value is checked before any host is asked; in `environment` a wrong one
    reaches NCCL, which mostly passes over it without a word.

    Evidence: docs/settings.md, "nccl"; NCCL 2.30.7, src/graph/paths.cc: an unknown level falls through.

    Fix: Write it in `nccl`, without the prefix and in lower case.
    """
    for name, text in view.service.environment.items():
        field = _FIELDS.get(name)
        value = None if field is None else typed(field, text)
        if value is None:
            continue
        service = f"services.{view.service.name}"
        old = f"{service}.environment.{name}"
        yield view.found_at(
            f"environment.{name}",
            f"nccl has a field for it, {field}, where its value would be checked",
            f"write {field}: {str(value).lower() if isinstance(value, bool) else value} in nccl, and remove it here",
            edits=(Set(f"{service}.nccl.{field}", value, instead_of=old), Remove(old)),
            safe=True,
        )


@service_rule("SGL504", "warning")
def nccl_value_ignored(view: ServiceView) -> Iterator[Found]:
    """A variable of NCCL in environment has a value that NCCL does not know.

    Why: NCCL compares the names of levels letter by letter, so `sys` is none, and passes over what it does not know:
    the server starts, and runs with NCCL's own choice. Unknown words in NCCL_ALGO and NCCL_PROTO end it instead.

    Evidence: NCCL 2.30.7, src/graph/paths.cc (levels, strcmp) and src/graph/tuning.cc (algorithms, protocols).

    Fix: Write it in `nccl`, which says what is wrong with a value.
    """
    for name, text in view.service.environment.items():
        field = _FIELDS.get(name)
        if field is not None and typed(field, text) is None:
            yield view.found_at(
                f"environment.{name}",
                f"NCCL does not know this value: {text!r}",
                f"write {field} in nccl, which says what it takes",
            )


def typed(field: str, text: str) -> str | float | bool | None:
    """The value to write for a field of `nccl` so that the variable is this text; None when the field has none."""
    candidates: list[str | int | bool] = [text]
    if text in ("0", "1"):
        candidates.insert(0, text == "1")
    if text.isdecimal():
        candidates.append(int(text))
    for candidate in candidates:
        try:
            found = Nccl.model_validate({field: candidate})
        except ValueError:
            continue
        if found.environment() == {variable(field): text}:
            return candidate
    return None


@service_rule("SGL505", "warning")
def misspelt_nccl_variable(view: ServiceView) -> Iterator[Found]:
    """NCCL does not know this variable, and knows one that is written almost the same.

    Why: NCCL reads the variables it knows and says nothing of others, so a misspelt one changes nothing. Names that
    resemble none of NCCL's are left alone: plugins have variables of their own that start with NCCL_.

    Evidence: The variables in nvidia-nccl-cu13 2.32.3, libnccl.so.2; NCCL's user guide, "Environment Variables".

    Fix: Correct the name.
    """
    unknown = [name for name in view.service.environment if name.startswith(_PREFIX) and name not in _FIELDS]
    if not unknown:
        return
    from difflib import get_close_matches  # noqa: PLC0415 - a millisecond that hardly a deployment needs

    from sglang_fleet.lint.rules.nccl_names import NAMES  # noqa: PLC0415 - as above

    for name in unknown:
        if name.removeprefix(_PREFIX) in NAMES:
            continue
        near = get_close_matches(name, sorted(f"{_PREFIX}{known}" for known in NAMES), n=1, cutoff=_ALIKE)
        if near:
            yield view.found_at(
                f"environment.{name}",
                f"is no variable of NCCL, which passes over it; {near[0]} is one",
                f"write {near[0]}" + (f", as {_FIELDS[near[0]]} in nccl" if near[0] in _FIELDS else ""),
            )


@service_rule("SGL506", "warning")
def infiniband_settings_without_infiniband(view: ServiceView) -> Iterator[Found]:
    """InfiniBand is turned off, and settings for it are left.

    Why: With ib_disable NCCL never looks at an InfiniBand or RoCE adapter, so what chooses or tunes one has no effect.

    Evidence: NCCL's user guide, "NCCL_IB_DISABLE": NCCL falls back to IP sockets.

    Fix: Remove these settings; or remove ib_disable, if InfiniBand shall be used.
    """
    nccl = view.service.nccl
    left = [name for name in _OF_INFINIBAND if getattr(nccl, name) is not None] if nccl.ib_disable else []
    for name in left:
        yield view.found_at(
            f"nccl.{name}",
            "has no effect: ib_disable turns InfiniBand off",
            "remove it; or remove ib_disable, if InfiniBand shall be used",
            edits=(Remove(f"services.{view.service.name}.nccl.{name}"),),
            safe=True,
        )


@service_rule("SGL507", "error")
def network_that_is_turned_off(view: ServiceView) -> Iterator[Found]:
    """The only network that NCCL may use is turned off.

    Why: `net` names the one network that NCCL takes; with `net: IB` and ib_disable there is none left. NCCL brings
    its network up even where all GPUs are in one host, so the server ends with "invalid usage" at its start.

    Evidence: NCCL's user guide, "NCCL_NET" (no other network is tried) and "NCCL_IB_DISABLE"; single hosts where
    NCCL_NET named a network that was not there: "Failed to initialize any NET plugin".

    Fix: Remove net, or ib_disable. On one host both may go.
    """
    nccl = view.service.nccl
    if nccl.ib_disable and (nccl.net or "").upper() == "IB" and uses_nccl(view):
        yield view.found_at(
            "nccl.net",
            "is IB, and ib_disable turns InfiniBand off: NCCL has no network left and does not start",
            "remove net, or ib_disable",
        )


@service_rule("SGL508", "note")
def every_call_logged(view: ServiceView) -> Iterator[Found]:
    """NCCL logs every collective call.

    Why: At level INFO the subsystems COLL and CALL (and so ALL) write a line for each operation of each GPU, many
    for every token; TRACE says even more where NCCL is built for it. The journal fills, and the server waits for it.

    Evidence: NCCL's user guide, "NCCL_DEBUG" and "NCCL_DEBUG_SUBSYS".

    Fix: Remove debug, or write WARN, once what was looked for is found.
    """
    nccl = view.service.nccl
    level = (nccl.debug or "").upper()
    words = {word.strip().upper() for word in (nccl.debug_subsys or "").split(",")}
    if level == "TRACE" or (level == "INFO" and words & _EVERY_CALL):
        yield view.found_at("nccl.debug", "NCCL logs every call of every GPU", "write WARN, or remove it")


@service_rule("SGL509", "warning")
def overwritten_by_sglang(view: ServiceView) -> Iterator[Found]:
    """SGLang overwrites this variable of NCCL.

    Why: With enable_nccl_nvls or enable_symm_mem SGLang sets NCCL_NVLS_ENABLE itself, and with enable_symm_mem
    NCCL_CUMEM_ENABLE too, whatever the environment says: a false here is lost.

    Evidence: sglang 0.5.9 and 0.5.23, srt/entrypoints/engine.py, _set_envs_and_config.

    Fix: Decide: remove the variable, or the argument.
    """
    nccl = view.service.nccl
    symmetric = view.value("enable_symm_mem") is True
    switch = "enable_symm_mem" if symmetric else "enable_nccl_nvls"
    overwritten = {
        "nvls_enable": nccl.nvls_enable is False and view.value(switch) is True,
        "cumem_enable": nccl.cumem_enable is False and symmetric,
    }
    for name, holds in overwritten.items():
        if holds:
            yield view.found_at(
                f"nccl.{name}",
                f"is false, and SGLang sets it to true because of {switch}",
                f"remove it, or {switch}",
            )
