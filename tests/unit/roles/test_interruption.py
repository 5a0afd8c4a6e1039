"""A signal ends the run, in whichever greenlet it comes."""

import subprocess
import sys

# In a process of its own, since it replaces the standard library's threads as pyinfra does.
SIGNAL_IN_A_THREAD = """
from gevent import monkey

monkey.patch_all()
import os, signal, threading, gevent
from roles.interruption import leave

went = []
signal.signal(signal.SIGINT, lambda *_: leave(130))

def work():
    gevent.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)
    gevent.sleep(0)
    went.append("on")

try:
    threading.Thread(target=work, daemon=True).start()
    gevent.sleep(10)
except SystemExit as end:
    gevent.sleep(0.2)
    print(end.code, *went)
"""


def test_f44_an_exit_is_not_lost_in_a_thread_which_goes_on() -> None:
    done = subprocess.run([sys.executable, "-c", SIGNAL_IN_A_THREAD], capture_output=True, text=True, check=False)
    assert done.stdout == "130 on\n", done.stderr
