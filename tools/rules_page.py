"""Write docs/rules.md from the rules' own docstrings: `python -m tools.rules_page`."""

import re
import textwrap
from pathlib import Path

from sglang_fleet.lint.explained import Explanation, explanation
from sglang_fleet.lint.register import EVERY, SUBJECTS

_SIGN = re.compile(r"[*<]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
PAGE = Path(__file__).parents[1] / "docs" / "rules.md"
HEAD = """# Rules

<!-- Written by `python -m tools.rules_page` from the docstrings in src/sglang_fleet/lint. -->

What `sglang-fleet lint` and a deploy look for; `sglang-fleet explain SGL201` says the same in a terminal.

- **error**: it cannot work. **warning**: it works, but badly or dangerously. **note**: worth knowing, and may well be
  meant so.
- A finding is waived in the YAML, with the reason, at the end of the line that it names or on a line of its own above.
  One about something that is missing names the mapping that it is missing from. Several rules are separated by commas,
  also with a reason each: `# waive SGL121: why, SGL123: why`.

      disable_cuda_graph: true # waive SGL201: capture runs out of memory on this board

- `--fix` makes the edits that are safe, and with `--unsafe-fixes` the others; a finding says which, and what they would
  write. Those of one finding are made all or none, and a file is written whole or not at all. The comment beside a
  setting that is removed goes with it and is named; one on a line of its own above stays, and is named with its line.
- `lint --json` prints `findings`, each with `rule`, `severity`, `file`, `line`, `key`, `message`, `fix`, `hosts`,
  `source` (`--data KEY` where the setting is in no file), `fixable` (its edits were tried), `safe` (to fix unseen) and
  `waived` (the reason, or null); and `summary`: how many `hosts`, `errors`, `warnings` and `notes`, and how many are
  `waived`. Waived ones are in `findings` with `--waived` only. With `--fix` there are also `fixed`, each with
  `comments_removed` and `comments_left` (`file`, `line`, `text`), and `not_fixed`, each with `why`; with `--diff` there
  are `diff` and `not_fixed`. What keeps `lint` from looking at all, such as an inventory with an error in it, is a
  finding of SGL001 and stands on standard error as well.
"""


def page() -> str:
    """The whole page."""
    every = [explanation(rule) for rule in EVERY]
    parts = [HEAD]
    for number, subject in SUBJECTS.items():
        rules = [one for one in every if one.id[3] == number]
        if rules:
            parts += [f"## {subject}\n", *(_section(one) for one in rules)]
    return "\n".join(parts)


def _section(one: Explanation) -> str:
    paragraphs = [
        f"### {one.id}: {_text(one.title)}",
        f"*{one.severity}; looks at {one.looks_at}{'' if one.waiver else '; cannot be waived'}*",
        *(_text(paragraph) for paragraph in one.why),
        *_led("Evidence", one.evidence),
        *_led("Fix", one.fix),
    ]
    return "\n\n".join(_wrapped(paragraph) for paragraph in paragraphs) + "\n"


def _text(written: str) -> str:
    """As Markdown: outside of code, a star or a name's first underscore is meant as it is."""
    parts = re.split(r"(`[^`]*`)", written)
    return "".join(part if part.startswith("`") else _SIGN.sub(r"\\\g<0>", part) for part in parts)


def _wrapped(paragraph: str) -> str:
    return textwrap.fill(paragraph, 120, break_long_words=False, break_on_hyphens=False)


def _led(name: str, paragraphs: tuple[str, ...]) -> list[str]:
    first, *others = map(_text, paragraphs)
    return [f"**{name}:** {first}", *others]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
