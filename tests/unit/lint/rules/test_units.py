"""systemd units, and that those we render are as the rules want them."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglang_fleet.lint.rules import RULES
from sglang_fleet.lint.unit_values import amount, option, seconds
from sglang_fleet.unit_reading import environment_file
from tests.factories import release, service
from tests.unit.lint.unit_views import said, unit_view
from tests.unit.lint.views import rule

LIMIT = "[Unit]\nStartLimitIntervalSec=60"
UNIT_RULES = [one for one in RULES if one.subject == "unit"]


@pytest.mark.parametrize(
    ("rule", "unit", "found"),
    [
        ("SGL610", "[Service]\nKillMode=mixed", False),
        ("SGL610", "[Service]\nKillMode=control-group", True),
        ("SGL610", "[Service]\nKillMode=process", True),
        ("SGL610", "[Service]\nKillMode=mixed\nKillMode=none", True),  # the last one counts
        ("SGL610", "[Service]", True),
        ("SGL610", "[Unit]\nKillMode=mixed", True),  # in a section that knows no such key
        ("SGL611", "[Service]\nType=notify", True),
        ("SGL611", "[Service]\nType=notify\nTimeoutStartSec=30min", False),
        ("SGL611", "[Service]\nType=notify\nTimeoutStartSec=infinity", False),
        ("SGL611", "[Service]\nType=notify\nTimeoutStartSec=0", False),
        ("SGL611", "[Service]\nType=oneshot\nTimeoutSec=60", True),
        ("SGL611", "[Service]\nExecStartPost=/usr/bin/curl http://127.0.0.1/health", True),
        ("SGL611", "[Service]\nType=simple", False),
        ("SGL611", "[Service]\nType=exec", False),
        ("SGL612", "[Service]\nTimeoutStopSec=30", True),
        ("SGL612", "[Service]\nTimeoutStopSec=40", False),
        ("SGL612", "[Service]\nTimeoutStopSec=2min 30s", False),
        ("SGL612", "[Service]\nTimeoutSec=10s", True),
        ("SGL612", "[Service]\nTimeoutStopSec=infinity", True),
        ("SGL612", "[Service]\nTimeoutStopSec=0", True),  # systemd: no limit
        ("SGL612", "[Service]", False),  # 90 s
        ("SGL613", "[Service]\nLimitMEMLOCK=infinity", False),
        ("SGL613", "[Service]\nLimitMEMLOCK=8M", True),
        ("SGL613", "[Service]", True),
        ("SGL614", "[Service]\nLimitNOFILE=1024", True),
        ("SGL614", "[Service]\nLimitNOFILE=65535", False),
        ("SGL614", "[Service]\nLimitNOFILE=1024:524288", False),  # SGLang raises the soft one
        ("SGL614", "[Service]\nLimitNOFILE=infinity", False),
        ("SGL614", "[Service]", False),  # the hard limit is 524288
        ("SGL615", "[Service]\nRestart=always\nRestartSec=10", True),
        ("SGL615", "[Service]\nRestart=on-failure", True),
        ("SGL615", "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always", True),
        ("SGL615", "[Unit]\nStartLimitIntervalSec=3h\n[Service]\nRestart=always\nRestartSec=10", False),
        ("SGL615", f"{LIMIT}\nStartLimitBurst=3\n[Service]\nRestart=always\nRestartSec=5", False),
        ("SGL615", f"{LIMIT}\nStartLimitBurst=5\n[Service]\nRestart=always\nRestartSec=9", True),
        ("SGL615", "[Service]\nRestart=no", False),
        ("SGL616", "[Service]\nRestart=no", True),
        ("SGL616", "[Service]", True),
        ("SGL616", "[Service]\nRestart=on-failure", False),
        ("SGL617", "[Service]", True),
        ("SGL617", "[Service]\nType=simple", True),
        ("SGL617", "[Service]\nType=exec", False),
        ("SGL617", "[Service]\nType=notify", False),
        ("SGL618", "[Service]", True),
        ("SGL618", "[Service]\nProtectSystem=full", True),  # of /usr and /etc only
        ("SGL618", "[Service]\nProtectSystem=strict", False),
        ("SGL618", "[Service]\nReadOnlyPaths=/models\nExecStart=python --model-path /models/k2", False),
        ("SGL618", "[Service]\nReadOnlyPaths=/models\nExecStart=python --model-path /models2/k2", True),
        ("SGL618", "[Service]\nReadOnlyPaths=/models\nExecStart=python --model-path=/models", False),
    ],
)  # fmt: skip
def test_units(rule: str, unit: str, found: bool) -> None:  # noqa: FBT001 - a case
    assert len(said(rule, unit_view(unit))) == found


HARMLESS = st.dictionaries(st.sampled_from(["NCCL_ALGO", "OMP_NUM_THREADS", "A_B"]), st.text("abc \"'\\$%", max_size=8))
SECONDS = st.floats(min_value=0.5, max_value=1e7, allow_nan=False)


@given(
    user=st.sampled_from(["root", "sglang"]),
    model=st.sampled_from(["/models/K2", "moonshotai/Kimi-K2", "/with space/50%"]),
    startup=SECONDS,
    drain=st.just(0.0) | SECONDS,
    environment=HARMLESS,
    secrets=st.sampled_from([{}, {"api_key": "k3y"}, {"api_key": "k3y", "HF_TOKEN": "t0ken"}]),
    gpus=st.none() | st.just([0, 1]),
)
def test_no_rule_about_units_finds_anything_in_what_we_render(
    user: str,
    model: str,
    startup: float,
    drain: float,
    environment: dict[str, str],
    secrets: dict[str, str],
    gpus: list[int] | None,
) -> None:
    one = service(
        user=user,
        args={"model_path": model, "pp_size": 2},
        health={"startup_deadline": startup, "drain": drain},
        environment=environment,
        secrets={name: {"env": "X"} for name in secrets},
        gpus=gpus,
    )
    made = release(one, secrets=secrets)
    files = {**environment_file(made.text("environment")), **environment_file(made.text("environment.secret"))}
    view = unit_view(made.text("unit"), files)
    assert [found.message for each in UNIT_RULES for found in each.check(view)] == []


def test_an_empty_unit_has_nearly_all_that_the_rules_know_and_breaks_none_of_them() -> None:
    silent = {each.id for each in UNIT_RULES if not list(each.check(unit_view("")))}
    assert silent <= {"SGL611", "SGL612", "SGL614", "SGL615", "SGL635", "SGL636"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("90", 90),
        ("2min 30s", 150),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("500msec", 0.5),
        ("1µs", 1e-6),
        ("1w", 604800),
        ("1.5h", 5400),
        ("infinity", math.inf),
        ("", None),
        ("soon", None),
        ("5 parsecs", None),
        ("5s and", None),
    ],
)
def test_time_spans(text: str, value: float | None) -> None:
    assert seconds(text) == value


@given(st.text(max_size=12))
def test_any_text_is_a_time_or_none(text: str) -> None:
    found = seconds(text)
    assert found is None or found >= 0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8M", 8 * 2**20),
        ("1P", 2**50),
        ("1024:524288", 1024),
        ("infinity", math.inf),
        (None, None),
        ("lots", None),
        ("8 M", None),
    ],
)
def test_amounts(text: str | None, value: float | None) -> None:
    assert amount(text) == value


@pytest.mark.parametrize(
    ("words", "value"),
    [(["a", "--m", "x"], "x"), (["a", "--m=x"], "x"), (["a", "--m"], ""), (["a"], ""), ([], ""), (["--mm", "x"], "")],
)
def test_options(words: Any, value: str) -> None:  # noqa: ANN401 - a case
    assert option(words, "--m") == value


def test_rules_about_units_say_what_they_would_write() -> None:
    for name in ("SGL610", "SGL613", "SGL617"):
        assert all(found.fix for found in rule(name).check(unit_view("")))
