"""The program that builds venvs on hosts: one exact version, checked before it runs."""

from typing import Any

# The SHA-256 of its manylinux wheels, as locks/dev.txt has them too.
UV: dict[str, Any] = {
    "version": "0.13.9",
    "sha256": {
        "x86_64": "d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19",
        "aarch64": "5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe",
    },
}
