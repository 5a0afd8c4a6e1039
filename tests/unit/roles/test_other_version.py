"""A copy of deploy.py that is not this version's is told of, with what copies it anew."""

import shlex
import subprocess
from pathlib import Path

import pytest

from roles.other_version import tell_of_other_version
from sglang_fleet.starting import own_file


@pytest.mark.parametrize("name", ["deploy.py", "rollback.py"])
def test_an_old_copy_is_told_of_once_and_the_command_puts_it_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    copy = tmp_path / name
    copy.write_text("from roles import gone\n")
    words = ["inventory/prod.py", name, "-y"]
    tell_of_other_version(words, folder=tmp_path)
    said = capsys.readouterr().err
    assert f"note: {name} is not the one of this version" in said
    assert "changed on purpose" in said
    tell_of_other_version(words, folder=tmp_path)
    assert capsys.readouterr().err == ""
    subprocess.run(shlex.split(said.splitlines()[-1]), check=True)
    assert copy.read_bytes() == own_file(name).read_bytes()


def test_a_copy_as_this_version_has_it_is_nothing_to_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deploy.py").write_bytes(own_file("deploy.py").read_bytes())
    (tmp_path / "other.py").write_text("")
    tell_of_other_version(["inventory/prod.py", "deploy.py", "other.py"], folder=tmp_path)
    assert capsys.readouterr().err == ""
