"""The spec: what every host shall run, checked before any host is asked."""

from sglang_fleet.spec.arguments import Arguments
from sglang_fleet.spec.cuda import Cuda
from sglang_fleet.spec.deployment import Deployment
from sglang_fleet.spec.health import Health
from sglang_fleet.spec.load import Loaded, load
from sglang_fleet.spec.nccl import Nccl
from sglang_fleet.spec.rollout import Rollout
from sglang_fleet.spec.secrets import SecretSource, is_argument
from sglang_fleet.spec.service import Limits, Service
from sglang_fleet.spec.sglang import Sglang

__all__ = [
    "Arguments",
    "Cuda",
    "Deployment",
    "Health",
    "Limits",
    "Loaded",
    "Nccl",
    "Rollout",
    "SecretSource",
    "Service",
    "Sglang",
    "is_argument",
    "load",
]
