"""When a server counts as healthy, and how long each step may take."""

from collections.abc import Mapping
from typing import Literal, get_args

from sglang_fleet.spec.base import Noun
from sglang_fleet.spec.durations import Duration, PositiveDuration

Probe = Literal["alive", "embedding", "generate"]
PROBES: tuple[Probe, ...] = get_args(Probe)
"""From the one that every server can answer to the one that says most."""


class Health(Noun):
    """The health gate. All durations are seconds.

    Attributes:
        startup_deadline: from start to the first answer; loading a large model takes minutes.
        interval: between two questions.
        soak: how long the server must go on answering before its release is proven.
        drain: how long running requests may take to finish when the server stops.
        probe: what is asked: a completion, an embedding, or only whether the server is alive; when not set, what a
            server with these arguments can answer.
    """

    startup_deadline: PositiveDuration = 1800.0
    interval: PositiveDuration = 2.0
    soak: Duration = 30.0
    drain: Duration = 120.0
    probe: Probe | None = None


def answerable(args: Mapping[str, object]) -> Probe:
    """The best question that a server can answer: half of a disaggregated pair completes nothing by itself."""
    if args.get("encoder_only") or args.get("disaggregation_mode") not in (None, "null"):
        return "alive"
    return "embedding" if args.get("is_embedding") else "generate"
