"""`python -m sglang.launch_server`: load, serve, drain."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

from . import arguments, logs, processes, ranks
from .faults import Faults
from .serving import Server
from .state import State

logger = logging.getLogger(logs.ENGINE)
_DRAIN_POLL = 0.05


def run(words: list[str]) -> int:
    """Serve until SIGTERM; the exit status."""
    values, merged = arguments.parse(words)
    faults = Faults(port=int(values["port"]), flags={word.partition("=")[0] for word in merged})
    if (code := faults.get("exit_at_start")) is not None:
        sys.stderr.write(f"RuntimeError: stand-in fault: exit_at_start {code}\n")
        return int(code)
    if _is_missing(str(values["model_path"])):
        sys.stderr.write(f"OSError: {values['model_path']}: no such model folder\n")
        return 1
    logs.configure(str(values["log_level"]))
    logger.info("server_args=%s", values)
    if faults.get("ignore_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _schedule_ends(faults)
    scheduler = processes.start_scheduler()
    processes.watch(scheduler, _scheduler_died)
    if (seconds := faults.get("scheduler_dies_after")) is not None:
        processes.after(float(seconds), lambda: os.kill(scheduler, signal.SIGKILL))
    time.sleep(float(faults.get("start_delay")))
    try:
        joined = ranks.form(values, dismissed=ranks.end_now)
    except OSError as error:
        sys.stderr.write(f"torch.distributed.DistNetworkError: {values['dist_init_addr']}: {error}\n")
        return 1
    return _serve(State(arguments=values, words=merged, faults=faults, ranks=joined))


def _is_missing(model: str) -> bool:
    """A model named by a path must be there; any other name would be looked up on the hub."""
    return model.startswith("/") and not Path(model).is_dir()


def _schedule_ends(faults: Faults) -> None:
    if plan := faults.get("exit_after"):
        processes.after(float(plan["seconds"]), lambda: os._exit(int(plan.get("code", 1))))


def _serve(state: State) -> int:
    try:
        server = Server(state)
    except OSError as error:
        return _port_in_use(state, error)
    if orphan := state.faults.get("orphan"):
        processes.leave_orphan(server.fileno(), escape=orphan == "escape")
    if state.ranks.rank:
        ranks.be_deaf(state.ranks.rank)
    elif not state.faults.get("ignore_sigterm"):
        signal.signal(signal.SIGTERM, lambda *_: state.stopping.set())
    signal.signal(signal.SIGINT, lambda *_: state.stopping.set())
    host, port = server.server_address[:2]
    logs.uvicorn(f"Started server process [{os.getpid()}]")
    logs.uvicorn(f"Uvicorn running on http://{host!s}:{port} (Press CTRL+C to quit)")
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 3600.0}, daemon=True).start()
    state.listening_since = time.monotonic()
    threading.Thread(target=_announce, args=(state,), daemon=True).start()
    state.stopping.wait()
    return _drain(state)


def _announce(state: State) -> None:
    time.sleep(float(state.faults.get("health_503_for")))
    logging.getLogger("sglang.srt.entrypoints.http_server").info("The server is fired up and ready to roll!")
    if plan := state.faults.get("exit_after_ready"):
        processes.after(float(plan["seconds"]), lambda: os._exit(int(plan.get("code", 1))))


def _drain(state: State) -> int:
    """Wait for the requests in flight, without a limit: systemd's TimeoutStopSec is the limit.

    New requests are still taken meanwhile, as by the real one.
    """
    log = logging.getLogger("sglang.srt.managers.tokenizer_manager")
    log.info("Gracefully exiting... Remaining number of requests %s.", state.in_flight)
    while state.in_flight:
        time.sleep(_DRAIN_POLL)
    time.sleep(float(state.faults.get("slow_drain") or 0))
    state.ranks.dismiss()
    return 0


def _port_in_use(state: State, error: OSError) -> int:
    """As measured on the real one: it says so, hangs in its warm-up, and is killed two minutes later."""
    address = (state.arguments["host"], state.arguments["port"])
    sys.stderr.write(f"ERROR:    [Errno {error.errno}] error while attempting to bind on address {address}: ")
    sys.stderr.write(f"{os.strerror(error.errno or 0).lower()}\n")
    time.sleep(float(state.faults.get("bind_hang")))
    processes.kill_self()
    return 1


def _scheduler_died() -> None:
    logging.getLogger("sglang.srt.utils.watchdog").error("Subprocess scheduler_0 died: killing the server.")
    time.sleep(0.2)
    processes.kill_self()


if __name__ == "__main__":
    warnings.warn(
        "'python -m sglang.launch_server' is still supported, but 'sglang serve' is the recommended entrypoint.",
        UserWarning,
        stacklevel=1,
    )
    status = run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: threads in a request that hangs would keep the process alive.
    os._exit(status)
