from collections.abc import Iterator

import pytest

from tests.unit.host.talking import Talking


@pytest.fixture
def talking() -> Iterator[Talking]:
    with Talking() as server:
        yield server
