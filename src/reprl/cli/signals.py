"""Signals that end a process interrupt the command first, and only where an interrupt does no harm."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# Code that is called by the compiler's own, or owns what that has made: there an interrupt is swallowed, or breaks it.
_DELICATE = "llvmlite"
_PAUSE = 0.02  # seconds until an interrupt is tried again


@contextmanager
def ending_in_order() -> Iterator[list[int]]:
    """Have signals that end a process interrupt it first; the same one again ends it at once.

    The interrupt waits for the compiler to leave its own code. One that is swallowed all the same, in a destructor or
    in a callback, comes again. What half-made objects complain of as they are collected is of no use to anybody, and is
    not shown.

    Yields:
        The signals that have come.
    """
    usual: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    if hasattr(signal, "SIGHUP"):
        usual[signal.SIGHUP] = signal.SIG_DFL
    if threading.current_thread() is not threading.main_thread():
        usual = {}
    ours = {number: handler for number, handler in usual.items() if signal.getsignal(number) is handler}
    ending, complain = _Ending(), sys.unraisablehook

    def overhear(what: sys.UnraisableHookArgs) -> None:
        if not ending.asked:
            complain(what)
        elif what.exc_type is KeyboardInterrupt:
            ending.swallowed()

    try:
        for number in ours:
            signal.signal(number, ending.receive)
        if ours:
            sys.unraisablehook = overhear
        yield ending.asked
    finally:
        try:
            ending.close()
        finally:
            sys.unraisablehook = complain
            for number, handler in ours.items():
                signal.signal(number, handler)
            for number in ending.late:
                signal.raise_signal(number)


class _Ending:
    """The interrupt that a signal asks for, now or as soon as it does no harm."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.late: list[int] = []
        """Signals that came when nothing was left to interrupt."""
        self._handled = sys.exc_info()[1]  # by whoever calls the command, not by the command
        self._raised = self._closed = False
        self._repeated: int | None = None
        self._lock = _thread.allocate_lock()

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: raise the interrupt, or see to it that it is raised a little later."""
        repeated, self._repeated = self._repeated == number, None
        if self._closed:
            self.late += [] if repeated else [number]
        elif repeated:
            if not self._raised:
                self._interrupt(_is_delicate(frame) or sys.exc_info()[1] is not self._handled)
        elif number in self.asked:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        else:
            self.asked.append(number)
            if len(self.asked) == 1:
                self._interrupt(_is_delicate(frame))

    def swallowed(self) -> None:
        """Interrupt again: the last one has been lost."""
        self._raised = False
        self._try_later()

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def _interrupt(self, harmful: bool) -> None:
        if not harmful or not self._try_later():
            self._raised = True
            raise KeyboardInterrupt

    def _try_later(self) -> bool:
        """Start a thread that asks again; without the locks of threading, which this may have interrupted."""
        try:
            _thread.start_new_thread(self._repeat, ())
        except RuntimeError:
            return False
        return True

    def _repeat(self) -> None:
        time.sleep(_PAUSE)
        with self._lock:
            if not self._closed and not self._raised:
                self._repeated = self.asked[0]
                _send(self.asked[0])


def _send(number: int) -> None:
    """Send a signal to the main thread, so that it wakes up if it waits."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(signal.Signals(number))


def _is_delicate(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == _DELICATE:
            return True
        frame = frame.f_back
    return False
