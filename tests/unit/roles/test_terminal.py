"""What is shown."""

import pytest
from pyinfra.api import output

from roles import terminal
from sglang_fleet.host.record import MARK


def test_what_hosts_tell_us_alone_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "_echo", print)
    terminal.hush()
    output.echo("[h1] k26: proven", err=True)
    output.echo(f"[h1] {MARK}{{}}", err=True)
    assert capsys.readouterr().err == "[h1] k26: proven\n"
