"""The log, as 0.5.23 writes it.

`prepare_server_args` sets up the root logger; then `configure_logger` (srt/utils/common.py) applies the
dictConfig of SGLANG_LOGGING_CONFIG_PATH when there is one; then `sglang.srt.entrypoints.engine` logs the
effective arguments, keys in clear, at INFO.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path

ENGINE = "sglang.srt.entrypoints.engine"


def configure(level: str) -> None:
    """Set up logging for this process; raises as the real one does when the named file is missing."""
    logging.basicConfig(
        level=getattr(logging, level.upper()),
        format="[%(asctime)s] %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
        force=True,
    )
    path = os.getenv("SGLANG_LOGGING_CONFIG_PATH")
    if not path:
        return
    if not Path(path).exists():
        raise FileNotFoundError(f"Setting SGLANG_LOGGING_CONFIG_PATH from env with {path} but it does not exist!")
    # Imported here: it costs 10 ms, and most servers have no such file.
    from logging.config import dictConfig  # noqa: PLC0415 - see the line above

    dictConfig(json.loads(Path(path).read_bytes()))


def uvicorn(message: str) -> None:
    """A line of the HTTP server, whose log has a format of its own."""
    sys.stderr.write(time.strftime("[%Y-%m-%d %H:%M:%S]") + f" INFO:     {message}\n")
    sys.stderr.flush()
