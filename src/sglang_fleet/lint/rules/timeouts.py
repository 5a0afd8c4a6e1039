"""Times that have to fit each other, and limits that a server outgrows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

BYTES_A_SECOND = 3e9
"""What one good NVMe drive reads; weights come from one more often than from several."""

START_SECONDS = 30
"""From start to the first answer with a model of a few kilobytes: 15 to 20 s, measured on 0.5.23."""

GATE_SECONDS = 25
"""How long the health gate waits for /health; host/machine/answers.py, HEALTH_TIMEOUT."""

WATCHDOG_SECONDS = 300
OPEN_FILES = 65535


@service_rule("SGL601", "warning", needs="model")
def deadline_shorter_than_loading(view: ServiceView) -> Iterator[Found]:
    """The weights cannot be read before startup_deadline.

    Why: The deadline counts from the start of the server to its first answer. Reading the weights from one NVMe drive
    at 3 GB/s takes longer than that already, and kernels to compile and graphs to capture come on top: the gate
    would call a healthy server late, and put the release before it back. (A model that the page cache holds is
    read faster, which after a boot it is not.)

    Evidence: The size of the model's weights; 3 GB/s is assumed for the drive.

    Fix: Raise health.startup_deadline to several times the reading time.
    """
    weights = None if view.model is None else view.model.weight_bytes
    deadline = view.service.health.startup_deadline
    if weights is not None and weights / BYTES_A_SECOND > deadline:
        needed = weights / BYTES_A_SECOND
        yield view.found_at(
            "health.startup_deadline",
            f"is {deadline:g} s; reading {weights / 1e9:.0f} GB of weights at 3 GB/s alone takes {needed:.0f} s",
            f"write at least {round_up(3 * needed)}",
        )


def round_up(seconds: float) -> str:
    """A time of whole minutes, not shorter."""
    return f"{int(seconds // 60) + 1}m"


@service_rule("SGL602", "warning")
def deadline_shorter_than_any_start(view: ServiceView) -> Iterator[Found]:
    """No SGLang starts within startup_deadline.

    Why: Before its first answer SGLang imports its packages, starts its processes, loads weights, captures graphs and
    warms up. With a model of a few kilobytes that takes 15 to 20 s; no real one is faster.

    Evidence: sglang 0.5.23, measured on a CPU host.

    Fix: Give the start some minutes: the default is 30.
    """
    if view.service.health.startup_deadline < START_SECONDS:
        yield view.found_at(
            "health.startup_deadline",
            f"is {view.service.health.startup_deadline:g} s; SGLang needs 15 to 20 s even for a model of kilobytes",
            "give it minutes; the default is 30m",
        )


@service_rule("SGL603", "note")
def soak_without_a_second_look(view: ServiceView) -> Iterator[Found]:
    """The soak is over before the server is looked at a second time.

    Why: During the soak the gate asks for the server's health every `interval`, and a release is proven at its end.
    A soak that is shorter proves no more than that one completion was answered; servers that die of their first real
    work do so seconds later.

    Evidence: host/activation/gate.py, soak.

    Fix: Make soak several times the interval; the default is 30s, and 2s for the interval.
    """
    health = view.service.health
    if health.soak < health.interval:
        yield view.found_at(
            "health.soak",
            f"is {health.soak:g} s and the interval {health.interval:g} s: the soak ends before a second look",
            "make the soak several times the interval",
        )


@service_rule("SGL604", "warning")
def health_check_outlasts_the_gate(view: ServiceView) -> Iterator[Found]:
    """SGLang answers /health later than the health gate waits.

    Why: SGLANG_HEALTH_CHECK_TIMEOUT is how long /health waits for a token before it answers 503. The gate waits 25 s
    for it: with a longer time a busy server, which would answer 200 in the end, counts as silent.

    Evidence: sglang 0.5.23, srt/entrypoints/http_server.py, HEALTH_CHECK_TIMEOUT (20 s); host/machine/answers.py.

    Fix: Remove the variable, or write less than 25.
    """
    text = view.service.environment.get("SGLANG_HEALTH_CHECK_TIMEOUT", "")
    if text.isdecimal() and int(text) >= GATE_SECONDS:
        yield view.found_at(
            "environment.SGLANG_HEALTH_CHECK_TIMEOUT",
            f"/health may take {text} s, and the health gate waits {GATE_SECONDS} s for it",
            f"remove it, or write less than {GATE_SECONDS}",
        )


@service_rule("SGL605", "warning")
def short_watchdog(view: ServiceView) -> Iterator[Found]:
    """The watchdog is shorter than SGLang's own.

    Why: When one batch takes longer than watchdog_timeout the scheduler ends itself, and with it every request. A
    batch may well take minutes: the first one of a new shape compiles its kernels while it runs. Even 300 s, the
    default, has been too short for that.

    Evidence: sglang 0.5.23, srt/managers/scheduler_components/invariant_checker.py; sglang#5862 and #3752 (killed at
    300 s); flashinfer PR#3386 (a compilation of 900 s).

    Fix: Remove watchdog_timeout. To notice hangs sooner, use soft_watchdog_timeout, which only reports.
    """
    value = view.value("watchdog_timeout")
    if view.written("watchdog_timeout") and isinstance(value, (int, float)) and 0 < value < WATCHDOG_SECONDS:
        yield view.found(
            "watchdog_timeout",
            f"the scheduler ends itself when a batch takes {value:g} s, and one that compiles kernels may",
            "remove it; soft_watchdog_timeout reports without ending anything",
            edits=(view.remove("watchdog_timeout"),),
        )


@service_rule("SGL606", "warning")
def few_open_files(view: ServiceView) -> Iterator[Found]:
    """The server may open fewer files than SGLang asks for.

    Why: Each connection and each socket between SGLang's processes is an open file. SGLang raises its limit to 65535
    at its start; a lower hard limit makes that fail with a warning, and the server then refuses connections under
    load with "too many open files".

    Evidence: sglang 0.5.23, srt/utils/common.py, set_ulimit.

    Fix: Remove limits.nofile: 1048576 is the default here.
    """
    nofile = view.service.limits.nofile
    if nofile is not None and nofile.isdecimal() and int(nofile) < OPEN_FILES:
        yield view.found_at(
            "limits.nofile", f"is {nofile}; SGLang asks for {OPEN_FILES}", "remove it: 1048576 is set then"
        )
