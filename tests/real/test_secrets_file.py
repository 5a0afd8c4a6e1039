"""SGLang itself reads the secrets out of the file that we render for `--config`."""

from pathlib import Path
from random import Random

from sglang_fleet.render import yaml_text
from tests.real.real_parser import RealParser

CHARACTERS = "abcXYZ019 -_:#'\"\\{}[]!&*%@`|>?,=~$\t\n\r\x07\x1b\x7f\x85\xa0é\u2028\ufeff\U0001f600"


def test_any_secret_arrives_as_it_is(real: RealParser, tmp_path: Path) -> None:
    random = Random(1)
    secrets = [
        *("true", "null", "1.10", "0x1", "2026-01-01", "~", "a: b", "# a", "'", '"', "\\n", " a ", "é", "\U0001f600"),
        *("".join(random.choices(CHARACTERS, k=random.randint(1, 12))).lstrip("-") or "a" for _ in range(500)),
    ]
    lines = []
    for number, secret in enumerate(secrets):
        path = tmp_path / f"{number}.yaml"
        path.write_text(f"api-key: {yaml_text(secret)}\n")
        lines.append(["--model-path", "m", "--config", str(path)])
    for secret, outcome in zip(secrets, real.parse(lines), strict=True):
        assert outcome == {"api_key": secret}
