"""An interrupt is neither lost nor does it break the compiler: where it cannot be raised, it is raised a little later.

Each case is a process of its own whose command is replaced by a few lines, so that the signal comes exactly there.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

FRAME = """
import ctypes, os, signal, sys, time, types
from reprl.cli import app

def ask(number=signal.SIGTERM):
    os.kill(os.getpid(), number)

def wait(seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)
    print("went on", flush=True)

def called_from_c(function):
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    pair = (ctypes.c_int * 2)(1, 2)
    ctypes.CDLL(None).qsort(pair, 2, ctypes.sizeof(ctypes.c_int), kind(lambda *_: function() or 0))

class Dying:
    def __del__(self):
        ask()

def work():
{body}

app._dispatch = lambda words: work() or 0
{call}
"""
PLAINLY = "sys.exit(app.main([]))"
IN_A_HANDLER = "try:\n    raise KeyError\nexcept KeyError:\n    sys.exit(app.main([]))"

TERM, INT = (143, "", "reprl: ended by a signal\n"), (130, "", "reprl: interrupted\n")
CASES = {
    "plain": ("ask(); wait()", TERM),
    "by key": ("ask(signal.SIGINT); wait()", INT),
    "callback": ("called_from_c(ask); wait()", TERM),
    "callback, by key": ("called_from_c(lambda: ask(signal.SIGINT)); wait()", INT),
    "destructor": ("Dying(); wait()", TERM),
    "error in the wake": ("called_from_c(ask); raise RuntimeError('half made')", TERM),
    "cleaning is not disturbed": (
        "try:\n    called_from_c(ask); raise RuntimeError\nfinally:\n    time.sleep(0.2); os.write(1, b'clean')",
        (143, "clean", "reprl: ended by a signal\n"),
    ),
    "work that goes on in an error's handler": (
        "called_from_c(ask)\ntry:\n    raise KeyError\nexcept KeyError:\n    wait(0.2)\nwait()",
        (143, "went on\n", "reprl: ended by a signal\n"),
    ),
    "compiler": (
        "space = {'__name__': 'llvmlite.made', 'wait': wait, 'ask': ask}\n"
        "exec('def compile():\\n    ask()\\n    wait(0.2)', space)\nspace['compile'](); wait()",
        (143, "went on\n", "reprl: ended by a signal\n"),
    ),
    "second ends at once": (
        "try:\n    ask(); wait()\nfinally:\n    ask(); wait()",
        (-signal.SIGTERM, "", ""),
    ),
    "second ends at once in the compiler": (
        "space = {'__name__': 'llvmlite.made', 'wait': wait, 'ask': ask}\n"
        "exec('def compile():\\n    ask()\\n    ask()\\n    wait()', space)\nspace['compile']()",
        (-signal.SIGTERM, "", ""),
    ),
    "a wait without an end": (
        "import threading\nlock = threading.Lock()\ncalled_from_c(ask); lock.acquire(); lock.acquire()",
        TERM,
    ),
    "a command that is called while an error is handled": (
        "called_from_c(ask); wait()",
        TERM,
    ),
    "another signal while it ends": (
        "try:\n    ask(); wait()\nfinally:\n    ask(signal.SIGHUP); wait(0.1)",
        (143, "went on\n", "reprl: ended by a signal\n"),
    ),
    "too late": ("called_from_c(ask)", (0, "", "")),  # nothing is left to interrupt
}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("name", CASES)
def test_a_signal_ends_a_command_in_order(name: str) -> None:
    body, expected = CASES[name]
    way = IN_A_HANDLER if "an error is handled" in name else PLAINLY
    script = FRAME.format(body="\n".join(f"    {line}" for line in body.splitlines()), call=way)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == expected


def test_complaints_of_collected_objects_are_shown_while_nobody_has_asked() -> None:
    script = FRAME.format(
        body="    class Sick:\n        def __del__(self): raise ValueError('sick')\n    Sick()", call=PLAINLY
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert "ValueError: sick" in done.stderr


def test_a_signal_that_comes_when_all_is_done_meets_the_handler_of_before() -> None:
    """Placed between the end of the work and the return of the handlers."""
    script = """
import os, signal
from reprl.cli import signals
close = signals._Ending.close
def late(self):
    close(self)
    os.kill(os.getpid(), signal.SIGTERM)
signals._Ending.close = late
with signals.ending_in_order():
    pass
print("lost")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "")
