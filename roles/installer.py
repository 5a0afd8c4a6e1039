"""The program that builds venvs on hosts: one exact version, checked before it runs."""

from typing import Any

# The SHA-256 of its manylinux wheels, as locks/dev.txt has them too.
UV: dict[str, Any] = {
    "version": "0.13.9",
    "sha256": {
        "x86_64": "d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19",
        "aarch64": "ecb6028d79dc96fbeafffe5c8af62a7099487ebc05a701e76714eebcffd06375",
    },
}
