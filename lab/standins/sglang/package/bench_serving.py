"""A stand-in for SGLang's benchmark: real requests to the server, in the file's shape of 0.5.23.

As the real one it needs the package `datasets`, takes the key from OPENAI_API_KEY, and writes the whole `/server_info`,
keys included, beside its numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import_module("datasets")  # the real one cannot do without, and says so in this way


def main() -> int:
    """Ask, count, write."""
    options = _options()
    print(f"benchmark_args={options}", flush=True)
    count, began = options.num_prompts, time.monotonic()
    with ThreadPoolExecutor(options.max_concurrency or count) as pool:
        took = list(pool.map(lambda number: _asked(options, number), range(count)))
    duration = time.monotonic() - began
    good = sorted(seconds * 1000 for seconds in took if seconds is not None)
    if not good:
        print("ValueError: Warmup failed", file=sys.stderr)
        return 1
    token = [each / options.random_output_len for each in good]
    result = {
        "max_concurrency": options.max_concurrency,
        "server_info": _get(options, "/server_info"),
        "duration": duration,
        "completed": len(good),
        "request_throughput": len(good) / duration,
        "output_throughput": len(good) * options.random_output_len / duration,
    }
    for name, values in {"ttft": good, "tpot": token, "itl": token}.items():
        result |= {f"median_{name}_ms": statistics.median(values), f"p99_{name}_ms": values[-1]}
    with open(options.output_file, "a") as file:  # noqa: PTH123 - as the real one
        file.write(json.dumps(result) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("backend", "base-url", "dataset-name", "model", "tokenizer", "output-file", "random-range-ratio"):
        parser.add_argument(f"--{name}")
    for name in ("num-prompts", "max-concurrency", "random-input-len", "random-output-len", "seed"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("tokenize-prompt", "disable-tqdm"):
        parser.add_argument(f"--{name}", action="store_true")
    return parser.parse_args()


def _asked(options: argparse.Namespace, number: int) -> float | None:
    """The seconds that one completion took; None for one that failed."""
    parameters = {"max_new_tokens": options.random_output_len, "ignore_eos": True}
    body = {"input_ids": [number] * options.random_input_len, "sampling_params": parameters}
    began = time.monotonic()
    try:
        _get(options, "/generate", body)
    except (OSError, urllib.error.URLError):
        return None
    return time.monotonic() - began


def _get(options: argparse.Namespace, path: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - any JSON
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"{options.base_url}{path}", data, headers)  # noqa: S310 - our own server's
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
