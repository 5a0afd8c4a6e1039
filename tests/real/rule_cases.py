"""The settings that the tests of the rules call loud or silent, and the server that SGLang itself gets of each."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sglang_fleet.catalog import catalogue
from sglang_fleet.catalog.commandline import read
from sglang_fleet.lint.views import ServiceView
from sglang_fleet.observe import Gpu
from sglang_fleet.render import command_words
from tests.real import rule_models
from tests.unit.lint.views import ask, view

TESTS = Path(__file__).parents[1] / "unit" / "lint" / "rules"
LOUD, SILENT = ("rule", "key", "words", "settings"), ("rule", "settings")
PATHS = ("model_path", "speculative_draft_model_path", "lora_paths")  # these are put in the place of a test's
RTX: dict[str, Any] = {"capability": [12, 0], "memory_mib": 97887, "count": 8}
B200: dict[str, Any] = {"capability": [10, 0], "memory_mib": 183359, "count": 8}
ONLY_ON_B200 = ("trtllm", "cutedsl", "tokenspeed")


@dataclass(frozen=True)
class Case:
    """One service of a test, with the release that it pins or another one.

    Attributes:
        rule: the rule that the test is about.
        key: the argument, or the path, at which the rule finds something.
        settings: of `tests.unit.lint.views.view`.
    """

    rule: str
    key: str
    version: str
    settings: dict[str, Any]

    @cached_property
    def view(self) -> ServiceView:
        """What rules see."""
        return view(**self.settings | {"version": self.version})

    @property
    def is_loud(self) -> bool:
        """Whether the rule finds something here."""
        return bool(ask(self.rule, self.view))

    @cached_property
    def words(self) -> list[str]:
        """The options of the server's command line, as we render them."""
        command = command_words(self.view.service, version=self.version, venv="/venv", release_folder="/release")
        return [word for option in command[1:] for word in option]

    @property
    def is_parsed(self) -> bool:
        """Whether the release's parser takes it; where it does not, the rule is nothing to it."""
        return not read(self.words, catalogue(self.version)).problems

    def written(self) -> object:
        """The value at which the rule finds something; None where it is at no argument, or at a path of a test's."""
        argument = None if "." in self.key or self.key in PATHS else self.view.catalogue.find(self.key)
        return None if argument is None else self.view.args.get(argument.name)

    def server(self, models: Path) -> dict[str, object]:
        """What `refusal_worker` is told: the words that we render, the environment, and the GPUs of the host."""
        words = list(self.words)
        model = str(rule_models.folder(models, self.settings.get("model")))
        flags = ["--model-path", "--speculative-draft-model-path"]
        for at, word in enumerate(words[:-1]):
            if word in flags and _is_a_plain_folder(words[at + 1]):
                words[at + 1] = model
        return {"words": words, "environment": self.view.environment, "gpu": self._gpu()}

    def _gpu(self) -> dict[str, object]:
        gpus: Any = () if self.view.state is None else self.view.state.gpus
        first = next((gpu for gpu in gpus if isinstance(gpu, Gpu)), None) if isinstance(gpus, tuple) else None
        if first is None or not isinstance(first.compute_cap, str) or not isinstance(first.memory_total_mib, int):
            return B200 if any(word in text for word in ONLY_ON_B200 for text in self.words) else RTX
        capability = [int(part) for part in first.compute_cap.split(".")]
        return {"capability": capability, "memory_mib": first.memory_total_mib, "count": len(gpus)}

    def __str__(self) -> str:
        named = {name: value for name, value in self.settings.items() if name in ("args", "environment", "nccl")}
        return f"{self.rule} {self.version} {str(named)[:300]}"


def loud(version: str) -> list[Case]:
    """The cases with which a rule is seen to find something, where it does so in this release too."""
    cases = (Case(rule, key, version, settings) for rule, key, _, settings in _parameters(LOUD))
    return [case for case in cases if case.is_parsed and case.is_loud]


def silent(version: str) -> list[Case]:
    """The cases of this release with which a rule is seen to find nothing."""
    return [
        case
        for rule, settings in _parameters(SILENT)
        if settings.get("version", "0.5.23") == version
        for case in [Case(rule, "", version, settings)]
        if case.is_parsed
    ]


def _parameters(names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    for file in sorted(TESTS.glob("test_*.py")):
        module = importlib.import_module(f"tests.unit.lint.rules.{file.stem}")
        for test in vars(module).values():
            for mark in getattr(test, "pytestmark", ()):
                if mark.name == "parametrize" and mark.args[0] == names:
                    yield from (one.values for one in mark.args[1])


def _is_a_plain_folder(path: str) -> bool:
    """A model folder that a test made up; `~/x` and names of a hub stay as they are."""
    return path.startswith("/") and not set("~$") & set(path)
