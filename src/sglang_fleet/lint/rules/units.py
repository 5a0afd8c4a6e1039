"""systemd units: how a server is started, stopped and started again. They hold for every unit that is rendered here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import unit_rule
from sglang_fleet.lint.unit_values import amount, option, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import UnitView

STOP_SECONDS = 33
"""15 s for the schedulers, and time for what was in flight before that; more than 30 s, measured with pp_size 2."""

FASTEST_FAILURE = 5.0
"""Seconds until SGLang ends by itself at the earliest: a wrong flag, exit status 2; measured on 0.5.23."""

OPEN_FILES = 65535
_WAITS_FOR_READINESS = ("notify", "notify-reload", "forking", "oneshot", "dbus")


def span(view: UnitView, section: str, key: str, otherwise: float) -> float:
    """A time of the unit in seconds; systemd's own where the unit says nothing."""
    text = view.last(section, key)
    found = None if text is None else seconds(text)
    return otherwise if found is None else found


@unit_rule("SGL610", "warning")
def not_kill_mode_mixed(view: UnitView) -> Iterator[Found]:
    """KillMode is not mixed.

    Why: With control-group, systemd's default, SIGTERM reaches SGLang's schedulers too: they die at once, and the
    requests that the main process meant to finish are lost. With process or none the schedulers may outlive it, and
    keep the port and the GPUs' memory. With mixed the main process drains, and what is left is killed at the end.

    Evidence: Measured on 0.5.23 with a request in flight: lost with control-group, answered with mixed. Schedulers
    that stayed: sglang#23627, PR#31645.

    Fix: KillMode=mixed.
    """
    mode = view.last("Service", "KillMode") or "control-group"
    if mode != "mixed":
        lost = "a stop kills the schedulers, and running requests are lost"
        kept = "schedulers may outlive the server, and keep its port and GPUs"
        yield view.found(f"KillMode={mode}: {lost if mode == 'control-group' else kept}", "KillMode=mixed")


@unit_rule("SGL611", "warning")
def start_timeout_of_systemd(view: UnitView) -> Iterator[Found]:
    """A start that takes long is given up.

    Why: Where systemd waits until a unit says that it is ready, or for ExecStartPost, it kills the start after
    TimeoutStartSec, 90 s when not set. Loading a large model takes minutes.

    Evidence: systemd.service(5), TimeoutStartSec and DefaultTimeoutStartSec.

    Fix: TimeoutStartSec= as long as the model may take; here it is health.startup_deadline.
    """
    waits = view.last("Service", "Type") in _WAITS_FOR_READINESS or bool(view.last("Service", "ExecStartPost"))
    limit = span(view, "Service", "TimeoutStartSec", span(view, "Service", "TimeoutSec", 90.0))
    if waits and 0 < limit <= 90:  # noqa: PLR2004 - systemd's own; 0 is no limit
        yield view.found(
            f"systemd kills a start that takes more than {limit:g} s; a large model takes minutes",
            "TimeoutStartSec= as long as the model may take",
        )


@unit_rule("SGL612", "warning")
def stop_timeout_too_short(view: UnitView) -> Iterator[Found]:
    """A stop cuts running requests off, or never ends.

    Why: At SIGTERM SGLang finishes the running requests, however long they take, and then waits 15 s for its
    schedulers. TimeoutStopSec is the only limit: a short one cuts every stop off, with `infinity` one request that
    does not end keeps the host from ever restarting the server.

    Evidence: sglang 0.5.23, srt/managers/tokenizer_manager.py, sigterm_watchdog; 18 s without a request with pp_size 2,
    measured.

    Fix: TimeoutStopSec= what requests may take plus more than 30 s; here it is health.drain plus 40 s.
    """
    limit = span(view, "Service", "TimeoutStopSec", span(view, "Service", "TimeoutSec", 90.0))
    if limit in (0, float("inf")):
        yield view.found(
            "a stop waits without end for a request that does not end",
            "TimeoutStopSec= what requests may take, plus 40 s",
        )
    elif limit < STOP_SECONDS:
        yield view.found(
            f"a stop is cut off after {limit:g} s; without any request it takes 18 s already",
            "TimeoutStopSec= what requests may take, plus 40 s",
        )


@unit_rule("SGL613", "warning")
def little_locked_memory(view: UnitView) -> Iterator[Found]:
    """The server may lock almost no memory.

    Why: systemd gives a service 8 MiB of locked memory. Buffers that a network card reads by itself (InfiniBand,
    RoCE) and pinned host memory need more, and fail with "cannot allocate memory" where there is plenty.

    Evidence: systemd.exec(5), DefaultLimitMEMLOCK (8 MiB); NCCL's user guide, "Troubleshooting", memory locking.

    Fix: LimitMEMLOCK=infinity.
    """
    limit = amount(view.last("Service", "LimitMEMLOCK"))
    if limit is None or limit < float("inf"):
        yield view.found(
            "LimitMEMLOCK is not infinity: buffers of network cards and pinned memory need more than 8 MiB",
            "LimitMEMLOCK=infinity",
        )


@unit_rule("SGL614", "warning")
def few_open_files_in_unit(view: UnitView) -> Iterator[Found]:
    """The server may open few files.

    Why: Each connection is an open file, and systemd's soft limit is 1024. SGLang raises it to 65535 if the hard limit
    allows; when that is lower it warns, and refuses connections under load.

    Evidence: sglang 0.5.23, srt/utils/common.py, set_ulimit; systemd.exec(5), DefaultLimitNOFILE.

    Fix: LimitNOFILE=1048576.
    """
    limit = amount((view.last("Service", "LimitNOFILE") or "").rpartition(":")[2])  # SGLang raises the soft one
    if limit is not None and limit < OPEN_FILES:
        yield view.found(f"LimitNOFILE is {limit:g}; SGLang asks for {OPEN_FILES}", "LimitNOFILE=1048576")


@unit_rule("SGL615", "warning")
def restarts_without_end(view: UnitView) -> Iterator[Found]:
    """A server that cannot start is started again without end.

    Why: systemd gives up after StartLimitBurst starts within StartLimitIntervalSec: 5 within 10 s when not set. A
    server that dies after loading for a minute never gets there, and is started for ever: the logs fill, the GPUs are
    busy, and nothing ever says `failed`.

    Evidence: systemd.unit(5), StartLimitIntervalSec; the fastest failure of 0.5.23 takes 5 s (measured).

    Fix: StartLimitIntervalSec= longer than StartLimitBurst starts of the longest kind take; here it is computed from
    health.startup_deadline.
    """
    if view.last("Service", "Restart") in (None, "no"):
        return
    interval = span(view, "Unit", "StartLimitIntervalSec", span(view, "Unit", "StartLimitInterval", 10.0))
    burst = amount(view.last("Unit", "StartLimitBurst"))
    starts = 5 if burst is None else burst
    pause = span(view, "Service", "RestartSec", 0.1)
    if interval <= 0 or starts <= 0 or interval <= starts * (pause + FASTEST_FAILURE):
        yield view.found(
            f"no server fails {starts:g} times within {interval:g} s: one that cannot start is started again for ever",
            "StartLimitIntervalSec= longer than that many starts take",
        )


@unit_rule("SGL616", "warning")
def never_restarted(view: UnitView) -> Iterator[Found]:
    """A server that dies stays dead.

    Why: Restart is not set, so systemd leaves a server that was killed (out of memory, a lost GPU, the watchdog) as
    it is until somebody looks.

    Evidence: systemd.service(5), Restart: no when not set.

    Fix: Restart=always.
    """
    if view.last("Service", "Restart") in (None, "no"):
        yield view.found("Restart is not set: a server that dies stays dead", "Restart=always")


@unit_rule("SGL617", "note")
def start_that_says_nothing(view: UnitView) -> Iterator[Found]:
    """The unit counts as started before its program was found.

    Why: With Type=simple a start has succeeded as soon as a process was forked: a missing interpreter or account shows
    later, in the journal. Type=exec waits until the program really runs.

    Evidence: systemd.service(5), Type.

    Fix: Type=exec.
    """
    if (view.last("Service", "Type") or "simple") in ("simple", "idle"):
        yield view.found("Type=simple succeeds before the program was found", "Type=exec")


@unit_rule("SGL618", "warning")
def writable_model(view: UnitView) -> Iterator[Found]:
    """The server may write to its model, and to the rest of the host.

    Why: A corrupt shard has made SGLang's loader delete the whole model, to load it again. With ProtectSystem=strict
    all is read-only but what the unit names.

    Evidence: sglang#14754.

    Fix: ProtectSystem=strict, with StateDirectory and CacheDirectory for what the server writes.
    """
    read_only = " ".join(view.values("Service", "ReadOnlyPaths")).split()
    model = option(view.words, "--model-path", "--model")
    covered = any(model == path or model.startswith(path.rstrip("/") + "/") for path in read_only if model)
    if view.last("Service", "ProtectSystem") != "strict" and not covered:
        yield view.found(
            "the server may write to its model: a corrupt shard has made it delete a whole one", "ProtectSystem=strict"
        )
