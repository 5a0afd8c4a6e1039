"""What a unit's note says of a setting that becomes something else, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sglang_fleet.importing.unit_notes import OWN, SYSTEMD
from sglang_fleet.unit_reading import settings as unit_settings
from tests.unit.importing.support import imported, notes, unit

REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ExecStartPre=/bin/x --token abcdef", "ExecStartPre is not carried over"),
        ("CPUAffinity=0-7", "CPUAffinity=0-7 is not carried over"),
        ("Nice=-5", "Nice=-5 is not carried over"),
        ("Slice=ml.slice", "Slice=ml.slice is not carried over"),
        ("KillMode=process", "KillMode=process: schedulers may outlive the server, and keep its port and GPUs"),
        ("KillMode=none", "the product's unit has KillMode=mixed"),
        ("Type=notify", "Type=notify: systemd kills a start that takes more than 90 s; a large model takes minutes"),
        ("Type=notify", "minutes (SGL611); the product's unit has Type=exec"),
        ("KillSignal=SIGINT", "KillSignal=SIGINT: the product's unit has KillSignal=SIGTERM"),
        ("SendSIGKILL=no", "SendSIGKILL=no: the product's unit has SendSIGKILL=yes"),
        ("TimeoutStopSec=10", "TimeoutStopSec=10: a stop is cut off after 10 s; without any request it takes 18 s"),
        ("TimeoutStopSec=10", "already (SGL612); health.drain stays at its default, 2m"),
        ("TasksMax=4096", "TasksMax=4096: the product's unit has TasksMax=infinity"),
        ("StateDirectory=x", "StateDirectory=x is not carried over: the product's unit has folders of its own"),
        ("ProtectHome=no", "ProtectHome=no: the product's unit has ProtectHome=read-only"),
        ("LimitNOFILE=1024", "LimitNOFILE is 1024; SGLang asks for 65535 (SGL614); kept in limits"),
        ("Restart=on-failure", "Restart=on-failure: no server fails 5 times within 10 s: one that cannot start is"),
        ("Restart=on-failure", "for ever (SGL615); the product's unit always restarts"),
        ("Restart=no", "Restart=no: a server that dies stays dead (SGL616); the product's unit always restarts"),
        ("LimitNOFILE=65536:99999", "LimitNOFILE=65536:99999: limits take one number"),
        ("SetCredential=key:abcdef", "SetCredential is not carried over"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_named(line: str, said: str) -> None:
    found = notes(imported(unit(line), "x.service"))
    assert said in next(each for each in found.splitlines() if each.startswith("2: "))
    assert "abcdef" not in found


@pytest.mark.parametrize("key", sorted(OWN))
def test_what_the_products_unit_is_said_to_set_is_what_it_sets(key: str) -> None:
    """Or what systemd does where a unit says nothing."""
    text = (REPOSITORY / "tests/unit/golden/sglang-k26.service").read_text()
    written = {each.key: each.value for each in unit_settings(text)}
    assert written.get(key, SYSTEMD.get(key)) == OWN[key]


@pytest.mark.parametrize(
    "line", ["LimitNOFILE=1048576", "TimeoutStartSec=20min", "TimeoutStopSec=200", "KillMode=mixed"]
)
def test_what_is_carried_over_or_is_the_same_needs_no_note(line: str) -> None:
    assert line.partition("=")[0] not in notes(imported(unit(line), "x.service"))
