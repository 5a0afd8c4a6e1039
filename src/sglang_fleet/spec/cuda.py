"""The CUDA toolkit that a host's servers compile their kernels with."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from sglang_fleet.spec.base import HostPath, Noun, ProjectPath, Sha256, Url, refusal


def _version(value: str) -> str:
    if not re.fullmatch(r"[0-9]+\.[0-9]+", value):
        raise refusal(f"expects major.minor, got {value!r}", 'write it like "13.0", in quotes')
    return value


class Cuda(Noun):
    """Which toolkit, from where.

    Attributes:
        version: `major.minor`.
        source: `apt` from NVIDIA's (or your own) repository; `wheels` from Python packages, for hosts
            without apt; `preinstalled` only verifies what is there.
        minimum_driver: the lowest major version of the driver that will do; CUDA 13 needs 580.
        repository: where to find the apt repository instead of NVIDIA's.
        keyring_sha256: what the repository's keyring package must hash to.
        requirements: with `wheels`: the lock file of the toolkit's packages.
        home: where the toolkit is, if not where its packages put it.
    """

    version: Annotated[str, AfterValidator(_version)]
    source: Literal["apt", "wheels", "preinstalled"] = "apt"
    minimum_driver: Annotated[int, Field(ge=1)] = 580
    repository: Url | None = None
    keyring_sha256: Sha256 | None = None
    requirements: ProjectPath | None = None
    home: HostPath | None = None

    @property
    def home_path(self) -> str:
        """CUDA_HOME on the host.

        Raises:
            ValueError: the source is `wheels`, whose folder follows from the content of its requirements.
        """
        if self.source == "wheels":
            raise ValueError("the home of CUDA from wheels is not in the spec")
        return self.home or f"/usr/local/cuda-{self.version}"

    @model_validator(mode="after")
    def _fits_source(self) -> Self:
        of_source = {"repository": "apt", "keyring_sha256": "apt", "requirements": "wheels"}
        for name, source in of_source.items():
            if getattr(self, name) is not None and self.source != source:
                raise refusal(f"has {name}, which only 'source: {source}' uses", f"remove {name}, or change the source")
        if self.source == "wheels" and self.requirements is None:
            raise refusal("needs requirements with 'source: wheels'", "name the lock file of the toolkit's packages")
        if self.source == "wheels" and self.home is not None:
            raise refusal("has home, which 'source: wheels' chooses by itself", "remove home")
        return self
