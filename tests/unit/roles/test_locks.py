"""Who still holds a lock when a run ends."""

from types import SimpleNamespace
from typing import Any

from roles import locks


def test_a_lock_that_could_not_be_freed_is_known_to_be_left() -> None:
    def connection(*, ok: bool) -> SimpleNamespace:
        return SimpleNamespace(call=lambda *_, **__: SimpleNamespace(ok=ok))

    def on_all(names: list[str], work: Any) -> None:  # noqa: ANN401  # a function
        for name in names:
            work(name)

    fleet: Any = SimpleNamespace(
        run="r1",
        locked={"h1", "h2"},
        unfreed={"h1", "h2"},
        connections={"h1": connection(ok=True), "h2": connection(ok=False)},
        on_all=on_all,
    )
    locks.release(fleet)
    assert (fleet.locked, fleet.unfreed) == (set(), {"h2"})
