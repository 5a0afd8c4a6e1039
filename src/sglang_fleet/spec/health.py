"""When a server counts as healthy, and how long each step may take."""

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from sglang_fleet.spec.base import Noun, Text, refusal
from sglang_fleet.spec.durations import Duration, PositiveDuration
from sglang_fleet.spec.network import HostAddress

Probe = Literal["alive", "embedding", "generate"]
PROBES: tuple[Probe, ...] = get_args(Probe)
"""From the one that every server can answer to the one that says most."""

Amount = Annotated[int, Field(ge=1)]


def _prompts(prompts: tuple[str, ...]) -> tuple[str, ...]:
    if not prompts:
        raise refusal("has no prompt", "write one or more, or remove golden")
    if len(set(prompts)) != len(prompts):
        raise refusal("has a prompt twice", "write each once")
    return prompts


class Golden(Noun):
    """Known questions. A new release has to answer them as the release before did; off when not set.

    The answers of a release are kept when it is proven. They are asked for without sampling (temperature 0).

    Attributes:
        prompts: the questions.
        tolerance: how alike an answer has to be, from 0 to 1; 1.0 is the same text. Other kernels round otherwise, so
            that answers may part without anything being wrong.
        tokens: the length of an answer.
    """

    prompts: Annotated[tuple[Text, ...], Field(strict=False), AfterValidator(_prompts)]
    tolerance: Annotated[float, Field(gt=0, le=1)] = 0.9
    tokens: Amount = 32


class Throughput(Noun):
    """A short measurement, which a new release must not do much worse in; off when not set.

    Bursts of requests: one to warm up, then at least three and for at least three seconds, of which the best one
    counts.

    Attributes:
        at_least: the share of the tokens a second of the release before that has to be reached.
        requests: requests at the same time.
        tokens: the length of each answer.
    """

    at_least: Annotated[float, Field(gt=0, le=10)] = 0.9
    requests: Amount = 8
    tokens: Amount = 64


class Health(Noun):
    """The health gate. All durations are seconds.

    Attributes:
        startup_deadline: from start to the first healthy answer; loading a large model takes minutes.
        ready_deadline: from the first healthy answer until every proof was given. A server that comes and goes gets no
            more time than one that does not.
        interval: between two questions.
        soak: how long the server must go on answering before its release is proven.
        drain: how long running requests may take to finish when the server stops.
        probe: what is asked: a completion, an embedding, or only whether the server is alive; when not set, what a
            server with these arguments can answer.
        address: at which clients reach the server, asked beside the host's own; when not set, network.address where the
            server listens on all addresses.
        arguments: whether the server has to say that it runs with args, as written.
        counters: whether the server has to count the tokens of a completion, and to obey max_tokens.
        golden: questions that have to be answered as before.
        throughput: a measurement that must not be much worse than before.
    """

    startup_deadline: PositiveDuration = 1800.0
    ready_deadline: PositiveDuration = 300.0
    interval: PositiveDuration = 2.0
    soak: Duration = 30.0
    drain: Duration = 120.0
    probe: Probe | None = None
    address: HostAddress | None = None
    arguments: bool = True
    counters: bool = True
    golden: Golden | None = None
    throughput: Throughput | None = None


def answerable(args: Mapping[str, object]) -> Probe:
    """The best question that a server can answer: half of a disaggregated pair completes nothing by itself."""
    if args.get("encoder_only") or args.get("disaggregation_mode") not in (None, "null"):
        return "alive"
    return "embedding" if args.get("is_embedding") else "generate"
