"""A stand-in for SGLang on lab hosts of sglang-fleet: not SGLang, no model, standard library only.

Serve with `python -m sglang.launch_server`. It copies what a deployment can see of the real one:

- the command line of the release (argparse over the release's own catalogue), `--config FILE.yaml`, exit
  status and message shape of what is refused;
- the life cycle: nothing listens while loading, then `/health` says 503, then 200; SIGTERM drains; a
  scheduler process of its own, whose death ends the server;
- a server on several hosts: its ranks wait for each other, and ranks above 0 serve `/health` alone;
- the HTTP interface: `/health`, `/health_generate`, `/ready`, `/v1/models`, `/v1/completions`,
  `/v1/chat/completions`, `/generate`, `/model_info`, `/server_info`, `/metrics`, with SGLang's API key rules;
- the log: `server_args=…` with the keys in clear, from the logger `sglang.srt.entrypoints.engine`, unless
  `SGLANG_LOGGING_CONFIG_PATH` says otherwise.

It does not copy: any computing, tokenizing (a word is a token), limits, most endpoints.

What it does wrong on purpose is described in `faults.py`.
"""

from ._version import __version__

__all__ = ["__version__"]
