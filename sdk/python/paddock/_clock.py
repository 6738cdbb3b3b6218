"""Time: a clock that goes on while the machine is suspended, pauses that another thread can end, and growing pauses."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import random
import socket
import threading
import time
from typing import Callable, Iterator, Optional


class SuspendClock:
    """A clock that continues while the machine is suspended, for systems that have no such clock. It follows the
    monotonic or the wall clock, whichever advanced more. A wall clock set forward may lose a lease."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clocks, self._seen, self._now = (monotonic, wall), (monotonic(), wall()), 0.0
        self._lock = threading.RLock()  # a signal handler may call it as well

    def __call__(self) -> float:
        with self._lock:
            before, self._seen = self._seen, (self._clocks[0](), self._clocks[1]())
            self._now += max(self._seen[0] - before[0], self._seen[1] - before[1])
            return self._now


def default_clock() -> Callable[[], float]:
    if hasattr(time, "CLOCK_BOOTTIME"):
        return functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    return SuspendClock()


def backoff(first: float, longest: float) -> Iterator[float]:
    """Yields pauses with jitter, each about twice as long as the one before."""
    while True:
        yield random.uniform(first / 2, first)
        first = min(first * 2, longest)


class Stopped(BaseException):
    """The work of this thread was stopped by its Stopper."""


class Stopper:
    """Ends the calls and pauses that one piece of work makes in a thread, from another thread. A connection that is
    being opened is not ended, but neither used."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._sock: Optional[socket.socket] = None

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()
        sock = self._sock
        if sock is not None:
            with contextlib.suppress(OSError):  # below TLS, which would forget its state under the reading thread
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def check(self) -> None:
        if self._stopped.is_set():
            raise Stopped

    def pause(self, seconds: float) -> None:
        self._stopped.wait(seconds)
        self.check()

    @contextlib.contextmanager
    def reads(self, sock: socket.socket) -> Iterator[None]:
        """In the block, stop breaks this connection."""
        self._sock = sock
        try:
            self.check()
            yield
        finally:
            self._sock = None


stopper: contextvars.ContextVar[Optional[Stopper]] = contextvars.ContextVar("paddock stopper", default=None)


def pause(seconds: float) -> None:
    """Sleeps, or raises Stopped."""
    current = stopper.get()
    if current is None:
        time.sleep(seconds)
    else:
        current.pause(seconds)


@contextlib.contextmanager
def unstoppable() -> Iterator[None]:
    """In the block, calls and pauses end by themselves only: what gives up a place must not be stopped."""
    before = stopper.set(None)
    try:
        yield
    finally:
        stopper.reset(before)
