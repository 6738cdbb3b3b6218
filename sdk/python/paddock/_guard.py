"""What a lease and a session have in common: renewal in the background, the deadline, the end, and who is told.

One thread renews every third of the TTL, or slightly sooner; another checks the clock. The deadline is the remaining
time when the last successful request was sent, minus a margin.

    held      the last renewal succeeded
    at_risk   a renewal failed and is retried; the work may continue until the deadline
    lost      the service said lease_lost, or the deadline has passed: stop the work. This state is final
    released  the lease was released
"""

from __future__ import annotations

import math
import os
import random
import signal
import threading
import time
import weakref
from types import FrameType, TracebackType
from typing import Callable, List, NoReturn, Optional, Tuple, Type, TypeVar, Union

from ._acquire import RELEASE_TIMEOUT, log, task
from ._answers import Json
from ._calls import Calls, Grant, SessionGrant
from ._clock import backoff, pause
from ._errors import LeaseLost, Lost, PaddockError, SessionLost, invalid
from ._hub import JOIN_AFTER, Ends, Watched

HELD, AT_RISK, LOST, RELEASED = "held", "at_risk", "lost", "released"
TICK = 1.0  # the longest wait of a thread: a wait does not count the time of a suspension
POLL = 0.05  # the interval at which the main thread is interrupted
_Self = TypeVar("_Self", bound="Guard")


class Guard:
    """A lease or a session, which is renewed in the background until it is lost or released."""

    _LOST: Type[Lost] = LeaseLost
    _OVERDUE: str = "The lease was not renewed in time. Stop the work; to continue, acquire again."
    _ENDED: str = "The lease was released; no work may continue under it."
    _DROPPED: str = "the lease was dropped without a release"

    def __init__(self, label: str, paddock: Calls, grant: Union[Grant, SessionGrant], margin: float,
                 on_state: Optional[Callable[..., object]], on_lost: Optional[Callable[..., object]], interrupt_main: bool,
                 on_renewed: Optional[Callable[..., object]]) -> None:
        self.lost: threading.Event = threading.Event()
        self._label, self._paddock, self._margin, self._on_state, self._on_lost = label, paddock, margin, on_state, on_lost
        self._on_renewed = on_renewed
        self._losses: List[Lost] = []  # the first counts; no mutex, since signals and forks come at any time
        self._released = self._new_loss(self._ENDED)
        self._failure: Optional[Exception] = None
        self._pid, self._release_done, self._notify_lock = os.getpid(), False, threading.RLock()
        self._interrupt_main, self._armed = interrupt_main, False
        self._on_end: Optional[Callable[[], object]] = None  # called at the end of any kind, in any thread
        self._wake, self._hinted = threading.Event(), math.inf  # of the thread that renews; when it renews after a hint
        self._listens_from, self._listens_to = paddock.clock() + JOIN_AFTER, Watched(frozenset())
        self._closing: Json = {}  # of a lease: for how long its release closes the lock, since the work is done
        self.task_id: str = ""  # of a lease: its thread of work
        self._outer_tasks: List[str] = []  # those around the with statements
        self._update(grant)

    def _start(self) -> None:
        weakref.finalize(self, _warn_dropped, self._label, self._DROPPED, self.lost).atexit = False
        self._start_threads((self.lost, "_check_deadline", "_notify_loss"), (self._wake, "_renew", ""))

    def _start_threads(self, *steps: Tuple[threading.Event, str, str]) -> None:
        for wake, step, last in steps:
            threading.Thread(target=_run_steps, args=(weakref.ref(self), self.lost, wake, step, last), name="paddock lease", daemon=True).start()

    @property
    def state(self) -> str:
        """held, at_risk, lost or released."""
        if self._losses:
            return RELEASED if self._losses[0] is self._released else LOST
        return AT_RISK if self.error else HELD

    @property
    def error(self) -> Optional[Exception]:
        """Why it is at risk, lost or released."""
        return self._losses[0] if self._losses else self._failure

    @property
    def deadline(self) -> float:
        """The instant, on the Paddock's clock, from which it counts as lost unless it is renewed."""
        return self._deadline

    def remaining(self) -> float:
        """Returns the seconds until the deadline; 0 if it is lost or released. It reads the clock."""
        return 0.0 if self._losses else max(self.deadline - self._paddock.clock(), 0.0)

    def check(self) -> None:
        """Raises LeaseLost, or SessionLost for a session, if it is lost or released, or the deadline has passed."""
        if self._check_deadline() <= 0:
            self._raise_loss()

    def hint(self, ended: Ends = frozenset(), within: float = 0.0) -> None:
        """Renews within these seconds, because something may have happened: these leases may have ended, which may not be
        its own."""
        self._hinted = min(self._hinted, self._paddock.clock() + random.uniform(0, within))
        self._wake.set()

    def _raise_loss(self) -> NoReturn:
        raise type(self._losses[0])(*self._losses[0].args) from self._losses[0].__cause__

    def _new_loss(self, detail: str) -> Lost:
        return self._LOST("session_lost" if issubclass(self._LOST, SessionLost) else "lease_lost", detail)

    def _overdue(self) -> Lost:
        """Returns the loss at the deadline, with the error of the last renewal if that has failed."""
        why = self._failure
        loss = self._new_loss(self._OVERDUE if why is None else f"{self._OVERDUE} The last renewal failed: {why}")
        loss.__cause__ = why
        return loss

    def _end(self, timeout: float) -> None:
        """Ends it here and at the service, see Lease.release."""
        if os.getpid() != self._pid:
            return
        clock, pauses = self._paddock.clock, backoff(0.05, 1.0)
        until = clock() + timeout
        self._check_deadline()
        self._lose(self._released)
        while not self._release_done:
            try:
                self._send_release(min(max(until - clock(), 0.1), RELEASE_TIMEOUT))
            except self._LOST as e:
                self._release_done = True
                if self.state == LOST or e.ended != "expired" or clock() < self.deadline or self._closing:
                    raise  # otherwise it expired after the end of the work
            except PaddockError as e:
                if self.state == RELEASED:
                    if not e.transient or clock() >= until:
                        raise
                    pause(min(next(pauses), max(until - clock(), 0.0)))
                    continue
            self._release_done = True
            if self.state == LOST:
                self._raise_loss()

    def __enter__(self: _Self) -> _Self:
        self._outer_tasks.append(task.get())
        task.set(self.task_id or task.get())
        if self._interrupt_main:
            self._handler, self._armed = signal.signal(signal.SIGURG, self._interrupt), True
            if self.lost.is_set():  # too early for an interrupt
                self.__exit__(None, None, None)
        return self

    def __exit__(self, _: Optional[Type[BaseException]], error: Optional[BaseException], __: Optional[TracebackType]) -> None:
        if self._outer_tasks:
            task.set(self._outer_tasks.pop())
        armed, self._armed = self._armed, False
        if self._interrupt_main:
            signal.signal(signal.SIGURG, self._handler or signal.SIG_DFL)
        self._end_block(error, self._interrupt_main and not armed and isinstance(error, KeyboardInterrupt))

    def _end_block(self, error: Optional[BaseException], interrupted: bool) -> None:
        """Ends it after a block that raised error, because a loss interrupted it or not."""
        try:
            self._end(5.0)
        except self._LOST as lost:
            if error is None or interrupted:
                raise
            if not isinstance(error, Lost):
                log.warning("%s: the work failed with %r and may have overlapped: %s", self._label, error, lost)
        except PaddockError as e:
            if self._closing and error is None:
                raise  # the lock stays open, and the work is done again
            log.warning("%s: it is not released and ends with its TTL: %s", self._label, e)

    def _check_deadline(self) -> float:
        """Marks it lost if its deadline has passed; returns how long to wait until the next check."""
        left = self.remaining()
        if left <= 0:
            self._lose(self._overdue())
        return min(left, TICK)

    def _update(self, grant: Union[Grant, SessionGrant]) -> None:
        self._ttl, self._failure, self._backoff = grant.ttl, None, backoff(grant.ttl / 60, grant.ttl / 12)
        self._deadline = grant.until - self._margin
        self._due = grant.sent + min(grant.ttl, grant.expires_in) / 3 * random.uniform(0.85, 1)

    def _send_renewal(self, timeout: float) -> Union[Grant, SessionGrant]:
        raise NotImplementedError

    def _send_release(self, timeout: float) -> None:
        raise NotImplementedError

    def _watched(self) -> Watched:
        """Returns what is heard of at once."""
        raise NotImplementedError

    def _listen(self) -> float:
        """Joins the hub if that is due, or again if there is more to watch; returns how long to wait until it is due."""
        early = self._listens_from - self._paddock.clock()
        if early > 0:
            return early
        watched = self._watched()
        if watched != self._listens_to:
            self._listens_to = watched
            self._paddock.hub.join(self, watched)
            if self._losses:  # another thread has ended it meanwhile
                self._paddock.hub.leave(self)
        return math.inf

    def _renew(self) -> float:
        """Renews it if a renewal is due; returns how long to wait until the next check."""
        unheard = self._listen()
        early = min(self._due, self._hinted) - self._paddock.clock()
        if early > 0:
            return min(early, unheard, TICK)
        self._hinted = math.inf
        was_failing = self._failure is not None
        try:
            grant = self._send_renewal(self._attempt_time())
        except self._LOST as e:
            self._observe(e)
            self._lose(e)
        except Exception as e:  # any error: retry until the deadline
            self._observe(e)
            self._failure = e
            longest = max(next(self._backoff), getattr(e, "retry_after", 0.0))
            self._due = self._paddock.clock() + max(min(longest, self.remaining() / 3), 0.01)
            if not was_failing:
                self._notify_state(AT_RISK, e)
        else:
            self._observe(None)
            if self._check_deadline() > 0:  # a response after the deadline does not revive it
                self._update(grant)
                if was_failing:
                    self._notify_state(HELD, None)
        return 0.0

    def _attempt_time(self) -> float:
        """Returns how long a renewal may take: with one address a sixth of the TTL, else the time that is left, which the
        addresses share."""
        left = max(self.remaining(), 0.01)
        return min(self._paddock.timeout, left) if self._paddock.several_addresses else min(self._paddock.timeout, self._ttl / 6, left)

    def _observe(self, error: Optional[Exception]) -> None:
        left = self.deadline + self._margin - self._paddock.clock()
        call(self._label, self._on_renewed, left / self._ttl, error)

    def _lose(self, why: Lost) -> None:
        if not self._losses:
            self._losses.append(why)
        if os.getpid() != self._pid:  # after a fork, the lock of an event may stay locked
            return
        self.lost.set()
        self._wake.set()
        self._paddock.hub.leave(self)  # each time: an interrupt may have come before it
        if self._on_end is not None:
            self._on_end()

    def _notify(self, state: str, listener: Optional[Callable[..., object]], *args: object) -> None:
        """Calls the listener unless the state has changed meanwhile; in order, although two threads call it."""
        with self._notify_lock:
            if self.state == state:
                call(self._label, listener, *args)

    def _notify_state(self, state: str, error: Optional[Exception]) -> None:
        self._notify(state, self._on_state, state, error)

    def _notify_loss(self) -> None:
        self._notify(LOST, self._on_lost, self.error)
        self._notify(LOST, self._on_state, LOST, self.error)
        while self._armed and self.state == LOST:  # until the main thread was interrupted or has left the block
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGURG)
            time.sleep(POLL)

    def _interrupt(self, number: int, frame: Optional[FrameType]) -> None:
        outside = frame is None or frame.f_code in (Guard.__enter__.__code__, Guard.__exit__.__code__)
        if self._armed and self.state == LOST and not outside:
            self._armed = False
            raise KeyboardInterrupt
        if callable(self._handler):
            self._handler(number, frame)


def check_interrupt(interrupt_main: bool) -> None:
    if interrupt_main and (threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGURG")):
        raise invalid("interrupt_main works only in the main thread, on POSIX; use the event lost instead.")


def call(name: str, listener: Optional[Callable[..., object]], *args: object) -> None:
    try:
        if listener:
            listener(*args)
    except Exception:
        log.exception("%s: a callback failed", name)


def _warn_dropped(label: str, dropped: str, lost: threading.Event) -> None:
    if not lost.is_set():
        log.warning("%s: %s; it is no longer renewed and ends with its TTL", label, dropped)
        lost.set()


def _run_steps(ref: weakref.ref[Guard], ended: threading.Event, wake: threading.Event, step: str, last: str) -> None:
    """Runs step, which returns the next pause, until the lease or session ends or has no reference; then runs last."""
    pause_before = 0.0
    while True:
        woken = wake.wait(pause_before)
        if ended.is_set():
            break
        if woken:
            wake.clear()
        guard = ref()
        if guard is None:
            return
        pause_before = getattr(guard, step)()
        del guard  # a waiting thread must not keep it alive
    guard = ref()
    if guard is not None and last:
        getattr(guard, last)()
