"""How a lease is acquired and a session is opened: with retries, in calls that wait at most 10 seconds and keep one place."""

from __future__ import annotations

import contextvars
import logging
import math
import os
import random
import uuid
from typing import TYPE_CHECKING, Optional, Tuple

from ._answers import Json
from ._arguments import Locks, ms, seconds
from ._calls import Calls, Grant, SessionGrant
from ._clock import backoff, pause, unstoppable
from ._errors import AlreadyDone, LeaseLost, LockFrozen, LockHeld, PaddockError, SessionLost, Unavailable, invalid

if TYPE_CHECKING:
    from ._lease_file import LeaseFile
    from ._session import Session

DEFAULT_TTL = 30.0
MAX_DEFAULT_MARGIN = 5.0
WAIT_TTL = 5.0  # the longest ttl in a call that waits; the first renewal asks for the whole
MAX_TASK_ID = 256
RELEASE_TIMEOUT = 2.0  # of one attempt
log: logging.Logger = logging.getLogger("paddock")
task: contextvars.ContextVar[str] = contextvars.ContextVar("paddock task", default="")


def new_task() -> str:
    """Returns a part of the task around it, or a new task. Threads that work under one lease are not parts of each other."""
    outer, part = task.get() or os.environ.get("PADDOCK_TASK", ""), uuid.uuid4().hex
    return f"{outer}.{part[:8]}" if outer and len(outer) + 9 <= MAX_TASK_ID else part


def check_times(ttl: Optional[float], margin: Optional[float], wait: Optional[float] = 0.0, retry: float = 0.0) -> Tuple[float, float]:
    """Returns the ttl and the margin with their defaults."""
    for option, value in (("ttl", ttl), ("margin", margin), ("retry", retry)):
        seconds(option, value)
    ttl = DEFAULT_TTL if ttl is None else ttl
    margin = min(ttl / 10, MAX_DEFAULT_MARGIN) if margin is None else margin
    check_wait(wait)
    if ttl <= 0:
        raise invalid(f"ttl is {ttl:g}; give more than 0 (seconds).")
    if not 0 < margin <= ttl / 3:
        raise invalid(f"margin is {margin:g}; give more than 0 and at most {ttl / 3:g} (seconds), a third of ttl.")
    return ttl, margin


def check_wait(wait: Optional[float]) -> None:
    if wait is not None and wait != math.inf and (seconds("wait", wait) or 0) < 0:
        raise invalid(f"wait is {wait:g}; give 0 or more (seconds), or None to wait without limit.")


def _too_slow() -> PaddockError:
    return Unavailable("unavailable", "The service responds too slowly for this ttl; use a longer one.")


def open_session(paddock: Calls, want: Json, margin: float, retry: float) -> SessionGrant:
    """Opens and returns a session that has more than the margin left. One that remains after a failure has no leases."""
    clock, pauses, chosen = paddock.clock, backoff(0.1, 2.0), want["session_id"]
    want["session_id"], retry_until = chosen or str(uuid.uuid4()), clock() + retry
    while True:
        try:
            grant = paddock.open_session(**want)
            if clock() + want["ttl"] > grant.until + margin:  # a slow response, or an earlier call has opened it
                grant = paddock.renew_session(grant.session_id, ttl=want["ttl"])
            if clock() < grant.until - margin:
                return grant
            error = _too_slow()
        except PaddockError as e:
            if isinstance(e, SessionLost) and not chosen:  # it has expired before the caller got it
                want["session_id"] = str(uuid.uuid4())
            elif not e.transient:
                raise
            error = e
        if clock() >= retry_until:
            raise error
        pause(min(max(next(pauses), error.retry_after), max(retry_until - clock(), 0.0)))


def acquire_lease(paddock: Calls, name: Locks, want: Json, margin: float, wait: float, retry: float, session: Optional[Session] = None,
                  file: Optional[LeaseFile] = None) -> Grant:
    """Acquires and returns a lease that has more than the margin left: with a file, that of the process before while it
    lives, or at its place."""
    clock, pauses, holder = paddock.clock, backoff(0.1, 2.0), want["holder"]
    lease_id, want["holder"] = file.kept if file and file.kept else (_choose(file, holder), holder)
    found = bool(file and file.kept)
    wait_until, retry_until = clock() + wait, clock() + max(wait, retry)
    short = None if session is not None else min(want["ttl"], WAIT_TTL)
    waits = found or short is None or short == want["ttl"]  # else first a try for the whole ttl: a free lock costs no renewal
    try:
        while True:
            left, began = max(wait_until - clock(), 0.0) if waits else 0.0, clock()
            # Waits that a crash made begin together must not end together, since a waiter is skipped between two calls.
            longest = paddock.longest_wait * random.uniform(0.8, 1.0)
            try:
                if session is not None:
                    session.check()
                ask: Json = {**want, "lease_id": lease_id, "wait": min(left, longest), "keep_place": left > longest}
                grant = paddock.acquire(name, **(ask if left == 0 else {**ask, "ttl": short}))
                if session is not None:
                    session.check()
                    return grant
                if clock() > grant.sent + margin or found or ms("ttl", grant.ttl) != ms("ttl", want["ttl"]):  # after a wait or a slow response
                    grant = paddock.renew(name, lease_id, ttl=want["ttl"])
                if clock() < grant.until - margin:
                    return grant
                error: PaddockError = _too_slow()
            except LeaseLost as e:  # before the caller got it: no work was done under that lease
                error, lease_id, want["holder"] = e, _choose(file, holder), holder
                if found:
                    found = False
                    continue
            except PaddockError as e:
                if file and e.code == "lease_id_in_use":  # the lease of the process before is another one: it and its id are kept
                    found = False
                    file.close(False)
                    raise file.is_of_another_mode() from e
                if _is_not_now(e, want) and clock() < wait_until:
                    waits = True
                    continue
                if e.fields.get("cut"):
                    continue
                if e.fields.get("pointer") == "/ttl_ms" and short not in (None, want["ttl"]) and left > 0:
                    short = want["ttl"]  # the service allows no short ttl
                    continue
                if not e.transient:
                    raise
                error = e
            if clock() >= retry_until:
                raise error
            if left > 0 and clock() - began >= 1:
                pauses = backoff(0.1, 2.0)  # the call ended during a wait, and the waiter is skipped until it returns
            pause(min(max(next(pauses), error.retry_after), max(retry_until - clock(), 0.0)))
    except BaseException as e:
        unsure = (not isinstance(e, PaddockError) or e.transient or isinstance(e, SessionLost) and e.status is None
                  or "place_kept_ms" in e.fields)
        ended = abandon(paddock, name, lease_id) if unsure or found else True
        if file:
            file.close(ended)
        raise


def _is_not_now(error: PaddockError, want: Json) -> bool:
    """Whether the lock cannot be granted yet: it is held, frozen or closed. Work that needs to be done only once does not
    wait until the lock opens."""
    return isinstance(error, (LockHeld, LockFrozen)) or isinstance(error, AlreadyDone) and not want.get("once")


def _choose(file: Optional[LeaseFile], holder: str) -> str:
    """Returns a new lease_id, and keeps it in the file."""
    lease_id = str(uuid.uuid4())
    if file is not None:
        file.keep(lease_id, holder)
    return lease_id


def abandon(paddock: Calls, name: Locks, lease_id: str) -> bool:
    """Releases an unused lease or place, and reports whether it has ended. Otherwise a place ends within a minute and a
    lease with its TTL."""
    try:
        with unstoppable():
            paddock.release(name, lease_id, timeout=RELEASE_TIMEOUT)
    except PaddockError as e:
        log.debug("%s: cannot release: %s", name, e)
        return isinstance(e, LeaseLost)
    return True
