"""What SGLang itself does with each setting that a rule finds something against: `verdicts.toml` says, and is checked.

The settings are those with which the rules' own tests see a rule speak. They are rendered as for a host and go through
SGLang's own checks (`refusal_worker`); what is known at its start only is shown on real servers.
"""

import json
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sglang_fleet.lint.register import EVERY, by_id
from tests.real import installed, refusals, rule_cases, tiny_model
from tests.real.conftest import Serve
from tests.real.rule_cases import Case

REFUSES, ACCEPTS, CHANGES, NOT_REACHED = "refuses", "accepts", "changes", "not reached"
TABLE: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("verdicts.toml").read_text())


@dataclass(frozen=True)
class Tried:
    """A case, and what SGLang made of it."""

    case: Case
    answer: refusals.Answer

    @property
    def outcome(self) -> str:
        """refuses, changes (the argument that the rule speaks of) or accepts."""
        if self.answer.refused:
            return REFUSES
        written = self.case.written()
        argument = self.case.view.catalogue.find(self.case.key)
        if written is None or argument is None:
            return ACCEPTS
        used = [
            self.answer.resolved[name] for name in (argument.name, argument.destination) if name in self.answer.resolved
        ]
        return ACCEPTS if not used or _is_kept(written, used[0]) else CHANGES

    def says(self, texts: list[str]) -> str | None:
        """Which of these SGLang's error has in it."""
        return next((text for text in texts if text in self.answer.refused), None)

    def __str__(self) -> str:
        return f"{self.case}: {self.outcome} {' '.join(self.answer.refused.split())[:200]}"


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Tried], list[Tried]]:
    """Every loud case of both releases, and the silent ones of rules that are about refusals."""
    folder = tmp_path_factory.mktemp("models")
    loud: list[Tried] = []
    silent: list[Tried] = []
    for version in installed.RELEASES:
        speaks = rule_cases.loud(version)
        quiet = [case for case in rule_cases.silent(version) if TABLE.get(case.rule, {}).get("sglang") == REFUSES]
        servers = [case.server(folder) for case in (*speaks, *quiet)]
        answers = refusals.ask(version, servers, folder=folder)
        both = [Tried(case, answer) for case, answer in zip((*speaks, *quiet), answers, strict=True)]
        loud += both[: len(speaks)]
        silent += both[len(speaks) :]
    return loud, silent


def test_every_rule_has_a_verdict_with_its_reason() -> None:
    assert list(TABLE) == [rule.id for rule in EVERY]
    for name, row in TABLE.items():
        assert row["sglang"] in (REFUSES, ACCEPTS, CHANGES, NOT_REACHED), name
        assert row.get("why") or row["sglang"] in (REFUSES, CHANGES), f"{name} needs a reason"
        assert bool(row.get("says")) == (row["sglang"] == REFUSES), f"{name}: what SGLang says"


def test_what_is_refused_is_an_error() -> None:
    """A rule that only warns of what no server starts with would let a deploy run into it."""
    rules = {name: by_id(name) for name, row in TABLE.items() if row["sglang"] == REFUSES and "mild" not in row}
    assert {name: rule.severity for name, rule in rules.items() if rule and rule.severity != "error"} == {}


def test_sglang_does_what_the_table_says(tried: tuple[list[Tried], list[Tried]], counts: list[str]) -> None:
    loud, _ = tried
    wrong = [
        f"{name} ({row['sglang']}): {problem}"
        for name, row in TABLE.items()
        for problem in _problems(row, [one for one in loud if one.case.rule == name])
    ]
    kinds = Counter(row["sglang"] for row in TABLE.values())
    outcomes = Counter(one.outcome for one in loud)
    counts.append(
        f"rules: SGLang refuses {kinds[REFUSES]}, changes {kinds[CHANGES]}, accepts {kinds[ACCEPTS]}, not reached "
        f"{kinds[NOT_REACHED]}; {len(loud)} settings: {outcomes[REFUSES]} refused, {outcomes[CHANGES]} changed, "
        f"{outcomes[ACCEPTS]} accepted"
    )
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong)


def test_what_a_rule_leaves_alone_is_not_refused_for_its_reason(tried: tuple[list[Tried], list[Tried]]) -> None:
    """A rule that is too narrow: SGLang refuses, with the rule's own words, what the rule finds nothing against."""
    _, silent = tried
    assert len(silent) > 150  # or it would say little
    assert [
        str(one) for one in silent for row in [TABLE[one.case.rule]] if "narrow" not in row and one.says(row["says"])
    ] == []


@pytest.mark.parametrize("version", installed.RELEASES)
@pytest.mark.parametrize(
    ("words", "argument"),
    [
        (["--pp-size", "2", "--pp-async-batch-depth", "-2"], "pp_async_batch_depth"),
        (["--pp-size", "2", "--nnodes", "2", "--node-rank", "5"], "node_rank"),
    ],
)
def test_nonsense_that_sglang_accepts(version: str, words: list[str], argument: str, tmp_path: Path) -> None:
    """A depth below zero, a rank beyond the nodes: SGLang takes both. The settings cannot say the first (SGL001)."""
    model = ["--model-path", str(tiny_model.make(tmp_path / "model")), "--dist-init-addr", "10.0.0.1:5000"]
    server: dict[str, object] = {"words": [*model, *words], "environment": {}, "gpu": rule_cases.RTX}
    (answer,) = refusals.ask(version, [server], folder=tmp_path)
    assert not answer.refused
    value = int(words[words.index(f"--{argument.replace('_', '-')}") + 1])
    assert answer.resolved[argument] == value
    if argument == "node_rank":
        return  # what the settings may say of ranks: tests/unit/spec
    with pytest.raises(ValueError, match=argument):
        _ = Case("SGL001", "", version, {"args": {argument: value, "pp_size": 2}}).view


@pytest.mark.parametrize(("name", "partition"), [("SGL132", "1,1,1"), ("SGL133", "1,2")])
def test_a_real_server_ends_at_its_start(
    name: str, partition: str, real_server: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What SGLang knows when it builds the model only: it accepts the arguments, and no server comes of them."""
    assert "at its start" in TABLE[name]["why"]
    given = installed.environment() | {"SGLANG_PP_LAYER_PARTITION": partition}
    monkeypatch.setattr(installed, "environment", lambda: given)
    with pytest.raises(AssertionError, match=r"(?s)the server ended with .*ValueError: .*does not match"):
        real_server(["--pp-size", "2"]).__enter__()


def test_a_real_server_serves_what_it_accepts(real_server: Serve) -> None:
    """Settings without an effect, all at once."""
    without_effect = ("SGL120", "SGL127", "SGL128", "SGL221", "SGL231")
    assert {TABLE[name]["sglang"] for name in without_effect} == {ACCEPTS}
    words = ["--pp-async-batch-depth", "8", "--pp-max-micro-batch-size", "4", "--enable-dynamic-chunking"]
    words += ["--hicache-ratio", "2", "--disable-priority-preemption"]
    with real_server(words) as server:
        info = server.get("/server_info")
        assert (info["pp_async_batch_depth"], info["pp_max_micro_batch_size"]) == (8, 4)
        assert server.post("/v1/completions", {"model": "default", "prompt": "w3 w4", "max_tokens": 4})["choices"]


def _problems(row: dict[str, Any], found: list[Tried]) -> list[str]:
    """Where SGLang does something else than the row says."""
    before = row.get("before", [])
    told = [one for one in found if not one.says(before)]
    expected = {row["sglang"]} if row["sglang"] != NOT_REACHED else {ACCEPTS}
    expected |= {ACCEPTS} if row["sglang"] == CHANGES else set(row.get("others", {}))
    problems = [str(one) for one in told if one.outcome not in expected]
    problems += [str(one) for one in told if one.outcome == REFUSES and not one.says(row.get("says", []))]
    unseen = set(row.get("says", [])) | set(before)
    unseen -= {said for one in found for texts in (row.get("says", []), before) if (said := one.says(texts))}
    problems += [f"SGLang never said {text!r}" for text in sorted(unseen)]
    if row["sglang"] in (ACCEPTS, CHANGES) and row["sglang"] not in {one.outcome for one in found}:
        problems.append("no case shows it")
    problems += [
        f"{kind} is shown by no case" for kind in row.get("others", {}) if kind not in {o.outcome for o in told}
    ]
    return problems


def _is_kept(written: object, used: object) -> bool:
    """Whether SGLang uses a value as it was written, whatever it adds to a mapping."""
    written, used = _read(written), _read(used)
    if isinstance(written, dict) and isinstance(used, dict):
        return all(name in used and _is_kept(value, used[name]) for name, value in written.items())
    return written == used or str(written) == str(used)


def _read(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
