"""When a server counts as healthy, and how long each step may take."""

from typing import Literal

from sglang_fleet.spec.base import Noun
from sglang_fleet.spec.durations import Duration, PositiveDuration


class Health(Noun):
    """The health gate. All durations are seconds.

    Attributes:
        startup_deadline: from start to the first answer; loading a large model takes minutes.
        interval: between two questions.
        soak: how long the server must go on answering before its release is proven.
        drain: how long running requests may take to finish when the server stops.
        probe: what is asked: a completion, an embedding, or only whether the server is alive.
    """

    startup_deadline: PositiveDuration = 1800.0
    interval: PositiveDuration = 2.0
    soak: Duration = 30.0
    drain: Duration = 120.0
    probe: Literal["generate", "embedding", "alive"] = "generate"
