"""The spec: what every host shall run, checked before any host is asked."""

from sglang_fleet.spec.arguments import Arguments
from sglang_fleet.spec.cuda import Cuda
from sglang_fleet.spec.deployment import Deployment
from sglang_fleet.spec.health import Golden, Health, Throughput
from sglang_fleet.spec.load import Loaded, load
from sglang_fleet.spec.nccl import Nccl
from sglang_fleet.spec.network import Network
from sglang_fleet.spec.rollout import Rollout
from sglang_fleet.spec.seat import Seat
from sglang_fleet.spec.secrets import SecretSource, is_argument
from sglang_fleet.spec.service import Limits, Service
from sglang_fleet.spec.sglang import Sglang

__all__ = [
    "Arguments",
    "Cuda",
    "Deployment",
    "Golden",
    "Health",
    "Limits",
    "Loaded",
    "Nccl",
    "Network",
    "Rollout",
    "Seat",
    "SecretSource",
    "Service",
    "Sglang",
    "Throughput",
    "is_argument",
    "load",
]
