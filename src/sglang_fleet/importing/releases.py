"""What a release of SGLang needs beside itself, as a start for `cuda` and `sglang`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sglang_fleet.catalog import order

# The last release whose packages are built for CUDA 12; what follows needs CUDA 13 and driver 580.
# Source: SGLang's installation guide, of 0.5.23.
_LAST_OF_CUDA_12 = "0.5.19"


@dataclass(frozen=True, slots=True)
class Frame:
    """The settings around the services.

    Attributes:
        cuda: the toolkit.
        lock: where the lock file of the release is expected.
    """

    cuda: dict[str, Any]
    lock: str


def frame(version: str) -> Frame:
    """What stands around the services of a release."""
    if order(version) <= order(_LAST_OF_CUDA_12):
        # CUDA 12.9 came with driver 575.
        return Frame({"version": "12.9", "source": "apt", "minimum_driver": 575}, f"locks/sglang-{version}-cu129.txt")
    return Frame({"version": "13.0", "source": "apt", "minimum_driver": 580}, f"locks/sglang-{version}-cu130.txt")
