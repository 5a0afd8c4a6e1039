"""Look for a value wherever it may have got to, however it is spelled there."""

import base64
import subprocess
import urllib.parse
from pathlib import Path


def spellings(value: str) -> list[str]:
    """The value, as a URL has it, and every way in which it can stand inside of base64."""
    found = [value, urllib.parse.quote(value, safe="")]
    for before in range(3):
        text = base64.b64encode(b"x" * before + value.encode()).decode()
        found.append(text[-(-before * 8 // 6) : len(text) // 4 * 4 - 4])
    return list(dict.fromkeys(found))


def holding(text: str, value: str) -> list[str]:
    """The lines in which the value stands, however it is spelled."""
    forms = spellings(value)
    return [line for line in text.splitlines() if any(form in line for form in forms)]


def files_holding(value: str, *folders: Path | str) -> list[str]:
    """The files below the folders in which the value stands."""
    patterns = [f"--regexp={form}" for form in spellings(value)]
    done = subprocess.run(
        ["grep", "--recursive", "--files-with-matches", "--text", "--fixed-strings", *patterns, *folders],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()
