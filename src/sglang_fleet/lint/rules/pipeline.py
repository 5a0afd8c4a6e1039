"""The pipeline: how many batches are in it, how large they are, and what SGLang refuses beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sglang_fleet.lint.rule import service_rule
from sglang_fleet.lint.rules.derived import attention_replicas, micro_batch_limit, stages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sglang_fleet.lint.found import Found
    from sglang_fleet.lint.views import ServiceView

DEPTH = "pp_async_batch_depth"
SIZE = "pp_max_micro_batch_size"


@service_rule("SGL120", "warning")
def depth_without_pipeline(view: ServiceView) -> Iterator[Found]:
    """pp_async_batch_depth is set, and there is no pipeline.

    Why: The depth counts batches beyond one for each stage of a pipeline. With pp_size 1 SGLang runs another loop,
    which never reads it.

    Evidence: sglang 0.5.9 to 0.5.23 srt/managers/scheduler_pp_mixin.py, the only reader, runs with pp_size above 1.

    Fix: Remove pp_async_batch_depth, or set pp_size.
    """
    if stages(view) == 1 and view.written(DEPTH):
        yield view.found(
            DEPTH,
            "has no effect with pp_size 1: there is no pipeline to keep busy",
            "remove it, or set pp_size",
            edits=(view.remove(DEPTH),),
            safe=True,
        )


@service_rule("SGL121", "note")
def depth_unset(view: ServiceView) -> Iterator[Found]:
    """pp_async_batch_depth is not set.

    Why: The pipeline has pp_size places for batches, plus pp_async_batch_depth. At depth 0, the default, the stages
    are all in use when there are that many batches, but each stage passes its results on only after it has launched
    its next batch, and the last stage has no place to put them aside. A depth lets GPU work and the CPU's work on
    results overlap. It may help many requests at once; it cannot make a single one faster, because that one is in one
    place at a time. The places that it adds hold something only where pp_max_micro_batch_size leaves requests over for
    them: with 8 requests, two stages and SGLang's own size of 4, depth 2 leaves one place in four empty. Depths above 1
    were reported to give wrong answers, so that 1 is the one to try first.

    Evidence: sglang 0.5.23 srt/managers/scheduler_pp_mixin.py: pp_loop_size = pp_size + pp_async_batch_depth, and the
    comments of event_loop_pp. sglang#15527: wrong answers above 1. Measured with 0.5.23, a tiny model and two stages on
    a CPU, where only the relation of the numbers means something: one request is as fast at any depth; eight requests
    are about 1.3 to 1.5 times as fast at depth 2 as at depth 0, but with batches of 4 only 0.8 times at depth 1. How
    requests were spread over the places: benchmarks/pipeline.py.

    Fix: Write 1 (--unsafe-fixes does), compare throughput at your own concurrency, and check the answers. Go back when
    it is not faster. Or write 0 to keep it as it is, and to end this note.
    """
    if stages(view) > 1 and view.has(DEPTH) and not view.written(DEPTH):
        yield view.found(
            DEPTH,
            f"is not set: {stages(view)} places for batches, none to spare while results go back. A depth may help many"
            " requests at once, never a single one",
            "write pp_async_batch_depth: 1 (--unsafe-fixes does), measure, check the answers; or write 0 to keep it so",
            edits=(view.set(DEPTH, 1),),
        )


@service_rule("SGL122", "note")
def depth_above_one(view: ServiceView) -> Iterator[Found]:
    """pp_async_batch_depth is above 1.

    Why: Wrong answers were reported for depths above 1: memory of a batch that is under way was given to another. The
    change that was proposed for it was closed without being merged. Later changes may have cured it; nobody says so.

    Evidence: sglang#15527, sglang PR#15545 (closed), sglang PR#20341 (merged, other races of the same code).

    Fix: Compare answers at temperature 0 with those at depth 0 or 1, under load. Keep the depth when they agree and it
    is faster.
    """
    depth = view.number(DEPTH) or 0
    if stages(view) > 1 and depth > 1:
        yield view.found(
            DEPTH,
            f"is {depth}: wrong answers were reported above 1, and whether that is cured is not known",
            "compare answers under load with those at depth 1",
        )


@service_rule("SGL123", "note")
def micro_batch_unset(view: ServiceView) -> Iterator[Found]:
    """pp_max_micro_batch_size is not set: SGLang chooses how many requests share a batch.

    Why: Each place of the pipeline, of which there are pp_size + pp_async_batch_depth, takes all waiting requests until
    it holds pp_max_micro_batch_size of them, and the next one takes what is left over. Left out,
    that is max_running_requests / pp_size: right for a full server, large for any other. Eight requests may then share
    one place; they pass the stages together while the other stages wait. That costs most where a step's time grows
    with its batch (a mixture of experts, long contexts), and little where reading the weights dominates.

    Evidence: sglang 0.5.9 to 0.5.23 srt/managers/scheduler.py: pp_max_micro_batch_size = max(max_running_requests //
    pp_size, 1), and get_num_allocatable_reqs. Seen with 0.5.23 (benchmarks/pipeline.py): eight requests, two stages and
    depth 2 are batches of 4, 3 and 1 with the default of 4, and four batches of 2 with 2.

    Fix: Set it to the number of requests that you expect at once, divided by the number of places, rounded up. No more
    requests than that size times the number of places can run at once; all others wait.
    """
    limit, places = micro_batch_limit(view), _places(view)
    if stages(view) > 1 and not view.written(SIZE) and (limit is None or limit > 1):
        much = f"{limit}" if limit is not None else f"SGLang's own max_running_requests / {stages(view)}"
        yield view.found(
            SIZE,
            f"is not set: up to {much} requests may share one batch while other stages of the {stages(view)} wait",
            f"set it to the requests expected at once divided by {places}, the places for batches, rounded up",
        )


@service_rule("SGL124", "note")
def micro_batches_cap_requests(view: ServiceView) -> Iterator[Found]:
    """pp_max_micro_batch_size lets fewer requests run than max_running_requests.

    Why: At most pp_max_micro_batch_size requests are in each of pp_size + pp_async_batch_depth places. Requests beyond
    that wait, even if max_running_requests would let them run. Only the queue shows it (`#queue-req` in the log, the
    metric sglang:num_queue_reqs): `#running-req` counts one place.

    Evidence: sglang 0.5.23 srt/managers/scheduler_pp_mixin.py, init_pp_loop_state; scheduler.py,
    get_num_allocatable_reqs. Seen with 0.5.23 (benchmarks/pipeline.py): of eight requests, with two stages and a
    size of 1, two run at depth 0 and four at depth 2.

    Fix: Raise pp_max_micro_batch_size, or lower max_running_requests to the number that counts.
    """
    size, running = view.number(SIZE), view.number("max_running_requests")
    if stages(view) == 1 or size is None or running is None:
        return
    most = size * _places(view) * attention_replicas(view)
    if most < running:
        yield view.found(
            SIZE,
            f"lets {most} requests run at once, fewer than max_running_requests ({running})",
            "raise it, or lower max_running_requests",
        )


@service_rule("SGL125", "warning")
def micro_batch_takes_all(view: ServiceView) -> Iterator[Found]:
    """pp_max_micro_batch_size lets one batch hold every request.

    Why: With pp_max_micro_batch_size at or above max_running_requests all requests that wait at a moment share one
    place of the pipeline. They pass the stages together, and all other stages wait.

    Evidence: sglang 0.5.23 srt/managers/scheduler.py, get_num_allocatable_reqs. Seen with 0.5.23
    (benchmarks/pipeline.py): eight requests that came at once, two stages and a size of 8 are batches of 1 and 7.

    Fix: Set pp_max_micro_batch_size to the requests that you expect at once, divided by pp_size +
    pp_async_batch_depth, rounded up.
    """
    size, running = view.number(SIZE), view.number("max_running_requests")
    if stages(view) > 1 and size is not None and running is not None and size >= running > 1:
        yield view.found(
            SIZE,
            f"is not below max_running_requests ({running}): nearly all requests may share a batch, and one stage works"
            f" while the other {stages(view) - 1} wait",
            f"set it to the requests expected at once divided by {_places(view)}, rounded up",
        )


@service_rule("SGL126", "note")
def fewer_requests_than_stages(view: ServiceView) -> Iterator[Found]:
    """max_running_requests is below the number of stages.

    Why: A request is in one stage at a time. With fewer requests than stages some stages always wait.

    Evidence: sglang 0.5.23 srt/managers/scheduler_pp_mixin.py, event_loop_pp.

    Fix: Raise max_running_requests, or share layers instead of stages: tp_size.
    """
    running = view.number("max_running_requests")
    if running is not None and running < stages(view):
        yield view.found(
            "max_running_requests",
            f"is {running}, so that at least {stages(view) - running} of {stages(view)} stages always wait",
            "raise it, or use tp_size instead of pp_size",
        )


@service_rule("SGL127", "warning")
def micro_batch_caps_without_pipeline(view: ServiceView) -> Iterator[Found]:
    """pp_max_micro_batch_size limits a server that has no pipeline.

    Why: SGLang compares the running requests with pp_max_micro_batch_size also when pp_size is 1. A number below
    max_running_requests then is the real limit, and nothing says so.

    Evidence: sglang 0.5.9 to 0.5.23 srt/managers/scheduler.py, get_num_allocatable_reqs.

    Fix: Remove pp_max_micro_batch_size: max_running_requests is the limit.
    """
    size, running = view.number(SIZE), view.number("max_running_requests")
    if stages(view) == 1 and size is not None and (running is None or size < running):
        yield view.found(
            SIZE,
            f"limits the server to {size} running requests, although pp_size is 1",
            "remove it, and set max_running_requests",
            edits=(view.remove(SIZE),),
        )


@service_rule("SGL128", "warning")
def dynamic_chunks_without_pipeline(view: ServiceView) -> Iterator[Found]:
    """Dynamic chunking is on, and there is no pipeline.

    Why: enable_dynamic_chunking evens out the stages of a pipeline under long prompts. With pp_size 1 SGLang skips it.

    Evidence: sglang 0.5.23 srt/managers/scheduler.py: enable_dynamic_chunking and pp_size > 1.

    Fix: Remove enable_dynamic_chunking.
    """
    if stages(view) == 1 and view.value("enable_dynamic_chunking") is True:
        yield view.found(
            "enable_dynamic_chunking",
            "has no effect with pp_size 1",
            "remove it",
            edits=(view.remove("enable_dynamic_chunking"),),
            safe=True,
        )


def _places(view: ServiceView) -> int:
    """Return how many batches the pipeline has places for."""
    return stages(view) + (view.number(DEPTH) or 0)
