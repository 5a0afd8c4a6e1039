from __future__ import annotations

import textwrap
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tools.catalogue import known_code
from tools.catalogue.static_values import Sources

if TYPE_CHECKING:
    from pathlib import Path

ServedSources = Callable[..., Sources]
RULES = """
    def add_cli_args_from_dataclass(): pass
    def _unwrap_annotated(): pass
    def _unwrap_optional(): pass
    def _unwrap_literal(): pass
    def _infer_type_func(): pass
    def _field_default(): pass
    def _field_to_cli_name(): pass
    """
ACTIONS = """
    class DeprecatedAction: pass
    class DeprecatedStoreTrueAction: pass
    class DeprecatedStoreConstAction: pass
    class DeprecatedAliasStoreAction: pass
    class LoRAPathAction: pass
    """
TYPES = """
    def json_list_type(): pass
    def human_readable_int(): pass
    def nullable_str(): pass
    """


@pytest.fixture
def anything_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tool take the short stand-ins of these tests for the code that it knows."""
    monkeypatch.setattr(known_code, "require", lambda _statement, _path: None)


@pytest.fixture
def release(tmp_path: Path) -> Iterator[ServedSources]:
    """The sources of a release of these files; `choices` is `sglang/choices.py`, `a__b` is `sglang/a/b.py`."""
    with ExitStack() as opened:

        def made(**files: str) -> Sources:
            path = tmp_path / "sglang-9.9-py3-none-any.whl"
            own = {"srt__arg_groups__arg_utils": RULES, "actions": ACTIONS, "types": TYPES}
            with zipfile.ZipFile(path, "w") as archive:
                for name, text in (own | files).items():
                    archive.writestr(f"sglang/{name.replace('__', '/')}.py", textwrap.dedent(text))
            return Sources(opened.enter_context(zipfile.ZipFile(path)))

        yield made
