"""Told at once: one long call of each client hears that a lease or a session has ended before its next renewal is due.

What it hears is a hint: it makes the guard renew at once, and the answer of that renewal alone decides. If the call fails,
nothing is lost but the hint: renewals go on as ever. The thread runs only while there is something to hear.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from typing import TYPE_CHECKING, FrozenSet, List, NamedTuple, Optional, Tuple

from ._clock import Stopped, Stopper, backoff, stopper
from ._errors import PaddockError

if TYPE_CHECKING:
    from ._calls import Calls
    from ._guard import Guard

JOIN_AFTER = 0.3  # seconds that a lease is held; a short critical section costs nothing
RESEND = 0.3  # the shortest time between two calls with other names
UNHEARD = 0.5  # the age of the last answer from which an interrupted call is followed by one that is answered at once
REFUSED_PAUSE = 300.0
SPREAD = 5.0  # seconds within which all guards renew after events were missed
MAX_LOCKS, MAX_SESSIONS = 5000, 1000
KINDS = ("released", "expired", "revoked")


Ends = FrozenSet[Tuple[str, int, int]]  # of leases, by lock, token and slot: leases of a shared lock may differ only in the slot


class Watched(NamedTuple):
    """What a guard wants to hear of: ends of leases, and of a session, by its public name."""

    leases: Ends
    session: str = ""


class Hub:
    """The long call of one client. Guards join and leave."""

    def __init__(self, calls: Calls) -> None:
        self._calls, self._pid = calls, os.getpid()
        self._lock = threading.RLock()  # garbage collection may call into it
        self._watched: weakref.WeakKeyDictionary[Guard, Watched] = weakref.WeakKeyDictionary()
        self._joined: weakref.WeakSet[Guard] = weakref.WeakSet()  # which have not renewed since there is a cursor
        self._ended: weakref.WeakSet[Guard] = weakref.WeakSet()  # sessions; a call that names one is answered at once
        self._running, self._waiting = False, False
        self._stopper = Stopper()  # of the call or pause

    def join(self, guard: Guard, watched: Watched) -> None:
        """Listens for the guard, or for what it watches now. The guard is told to renew once, for what was before."""
        with self._lock:
            if guard in self._ended:
                return
            if guard not in self._watched:
                weakref.finalize(guard, self._dropped).atexit = False  # it runs after those of the weak containers, which are newer
            self._watched[guard] = watched
            self._joined.add(guard)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="paddock events", daemon=True).start()
            elif self._waiting:
                self._stopper.stop()

    def leave(self, guard: Guard) -> None:
        if os.getpid() != self._pid:  # after a fork, the lock may stay locked
            return
        with self._lock:
            self._watched.pop(guard, None)
        self._dropped()

    def _dropped(self) -> None:
        """Ends the call or pause if there is nobody left who wants to hear."""
        with self._lock:
            if not self._watched:
                self._stopper.stop()

    def _run(self) -> None:
        cursor, missed, sent, heard, interrupted, pauses = None, False, 0.0, 0.0, False, backoff(1.0, 30.0)
        while True:
            self._pause(sent + RESEND - time.monotonic())
            with self._lock:
                if not self._watched:
                    self._running = False
                    return
                waits = cursor is not None and not (interrupted and time.monotonic() > heard + UNHEARD)
                self._stopper, self._waiting = Stopper(), waits
                watched = list(self._watched.values())
                joined = list(self._joined) if cursor is not None else []
                self._joined.difference_update(joined)
            _hint(joined)
            sent, error, interrupted = time.monotonic(), None, False
            stopper.set(self._stopper)
            try:
                cursor = self._hear(cursor, missed, watched, self._calls.longest_wait if waits else 0.0)
                missed, heard, pauses = False, time.monotonic(), backoff(1.0, 30.0)
            except Stopped:
                interrupted = True
            except PaddockError as e:
                error = e
            self._waiting = False
            if error is not None and error.status == 400:  # such as a cursor of another database: begin anew
                cursor, missed = None, True
            if error is not None and not error.fields.get("cut"):
                refused = error.status in (403, 404)
                self._pause(REFUSED_PAUSE * random.uniform(0.9, 1.1) if refused else max(next(pauses), error.retry_after))

    def _pause(self, seconds: float) -> None:
        """Waits; less if the last guard leaves."""
        with self._lock:
            self._stopper = Stopper()
            if not self._watched:
                return
        if seconds > 0:
            try:
                self._stopper.pause(seconds)
            except Stopped:
                pass

    def _hear(self, cursor: Optional[str], missed: bool, watched: List[Watched], wait: float) -> str:
        """Waits for an event, tells the guards, and returns the next cursor. missed says that events before it were missed."""
        locks = dict.fromkeys(lock for w in watched for lock, _, _ in sorted(w.leases))
        sessions = dict.fromkeys(w.session for w in watched if w.session)
        page = self._calls.wait_for_events(list(locks)[:MAX_LOCKS], sessions=list(sessions)[:MAX_SESSIONS], kinds=KINDS, cursor=cursor, wait=wait)
        ended = frozenset((event["lock"], event.get("fencing_token", 0), event.get("slot", 0)) for event in page["events"])
        gone = set(page.get("ended_sessions") or ())
        with self._lock:
            all_watched = list(self._watched.items())
            told = [guard for guard, w in all_watched if w.leases & ended or w.session in gone]
            for guard, w in all_watched:
                if w.session in gone:
                    self._ended.add(guard)
                    self._watched.pop(guard, None)
        _hint(told, ended)
        while all_watched and (missed or page.get("gap") or page.get("unreadable")):
            guard, w = all_watched.pop()
            guard.hint(w.leases, SPREAD)
        return page.get("next_cursor", "")


def _hint(guards: List[Guard], ended: Ends = frozenset()) -> None:
    """Tells the guards to renew now. The list becomes empty: this thread must not keep them alive."""
    while guards:
        guards.pop().hint(ended)
