"""Settings for tests of whole deployments."""

from collections.abc import Callable

from sglang_fleet.spec import Loaded

ALL = """\
cuda: {version: "13.0", minimum_driver: 580}
sglang: {version: 0.5.23, requirements: locks/sglang.txt}
services:
  k26:
    args:
      model_path: /models/k26
      disable_cuda_graph: true
      max_running_requests: 64
"""
KEY = "services.k26.args.disable_cuda_graph"

Load = Callable[..., Loaded]
