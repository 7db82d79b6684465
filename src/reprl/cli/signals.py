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
    """Have signals that end a process interrupt it first; a second one ends it at once.

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
    ending, complain = _Ending(list(ours)), sys.unraisablehook

    def overhear(what: sys.UnraisableHookArgs) -> None:
        if not ending.asked:
            complain(what)
        elif what.exc_type is KeyboardInterrupt:
            ending.listen()
            ending.try_later()

    ending.listen()
    if ours:
        sys.unraisablehook = overhear
    try:
        yield ending.asked
    finally:
        ending.close()
        sys.unraisablehook = complain
        for number, handler in ours.items():
            signal.signal(number, handler)


class _Ending:
    """The interrupt that a signal asks for, now or as soon as it does no harm."""

    def __init__(self, numbers: list[int]) -> None:
        self.asked: list[int] = []
        self._numbers = numbers
        self._repeated = self._closed = False
        self._lock = _thread.allocate_lock()

    def listen(self) -> None:
        for number in self._numbers:
            signal.signal(number, self._receive)

    def try_later(self) -> None:
        """Start a thread that interrupts again; without the locks of threading, which this may have interrupted."""
        _thread.start_new_thread(self._repeat, ())

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._closed:
            return
        repeated, self._repeated = self._repeated, False
        if not repeated and self.asked:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if not repeated:
            self.asked.append(number)
        if _is_delicate(frame) or (repeated and sys.exc_info()[0] is not None):  # the latter: it is ending already
            self.try_later()
            return
        for each in self._numbers:
            signal.signal(each, signal.SIG_DFL)
        raise KeyboardInterrupt

    def _repeat(self) -> None:
        time.sleep(_PAUSE)
        with self._lock:
            if not self._closed:
                self._repeated = True
                _thread.interrupt_main(signal.Signals(self.asked[0]))


def _is_delicate(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == _DELICATE:
            return True
        frame = frame.f_back
    return False
