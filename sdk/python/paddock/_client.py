"""The client for threads: the single calls, and the guards built on them."""

from __future__ import annotations

import math
import os
from types import TracebackType
from typing import Any, Callable, Iterator, Mapping, Optional, Type, TypeVar, Union

from . import _streams as streams
from ._acquire import abandon, acquire_lease, check_times, check_wait, new_task, open_session
from ._answers import Event, Json, Lock
from ._arguments import Locks
from ._calls import Calls, default_holder
from ._election import Election
from ._errors import AlreadyDone, LeaseLost, SessionLost, invalid
from ._guard import call, check_interrupt
from ._lease import Lease
from ._lease_file import LeaseFile
from ._once import Turn, check_options, closing_of
from ._session import Session
from ._streams import OnError

_Lease = TypeVar("_Lease", bound=Lease)
_R = TypeVar("_R")
_Self = TypeVar("_Self", bound="Paddock")
_HOLD: Mapping[str, Any] = {
    "ttl": None, "wait": 0.0, "retry": 10.0, "margin": None, "on_state": None, "on_lost": None, "interrupt_main": False, "on_acquired": None,
    "on_renewed": None, "holder": None, "mode": "exclusive", "capacity": None, "permits": None, "grace": None, "max_hold": None, "on_expiry": None, "metadata": None,
    "session": None, "task_id": None, "lease_id_file": None,
}
_NOT_IN_ELECTIONS = frozenset({"wait", "mode", "capacity", "permits", "metadata"})


class Paddock(Calls):
    """A client of a Paddock service. Each method sends one request, once, without retries or renewals, except hold,
    once, hold_session, election, stream and changes. Where there are several addresses, a request that fails at one is sent to
    the next. A with statement closes its connections at the end.

    base_url is the URL above /v1, such as https://locks.example.org. base_urls has those of several replicas of one
    deployment; the client uses the first that is well. By default they come from PADDOCK_URL, with commas between them.
    For a service that listens on a socket on the same machine it is unix:/run/paddock.sock; then tls is not used. The
    proxies of HTTPS_PROXY, HTTP_PROXY and NO_PROXY are used, but not for this machine.
    timeout limits a call beyond the requested wait, in seconds.
    key is the API key, which starts with pk_, if the service requires one; it appears in no error. headers are sent
    with each call. tls is for your own certificates. Where they are replaced while the program runs, pass functions:
    key is called for each request, and again if the service refuses the key; tls for each new connection. clock is for
    tests; it must continue while the machine is suspended. Raises ValueError for an invalid URL or key. Sends no request."""

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, _: Optional[Type[BaseException]], __: Optional[BaseException], ___: Optional[TracebackType]) -> None:
        self.close()

    def hold(self, name: Locks, *, ttl: Optional[float] = None, wait: Optional[float] = 0.0, retry: float = 10.0,
             margin: Optional[float] = None, on_state: Optional[Callable[[str, Optional[Exception]], object]] = None,
             on_lost: Optional[Callable[[LeaseLost], object]] = None, interrupt_main: bool = False,
             on_acquired: Optional[Callable[[float, Optional[BaseException]], object]] = None,
             on_renewed: Optional[Callable[[float, Optional[Exception]], object]] = None,
             holder: Optional[str] = None, mode: str = "exclusive", capacity: Optional[int] = None, permits: Optional[int] = None,
             grace: Optional[float] = None, max_hold: Optional[float] = None, metadata: Optional[Json] = None,
             on_expiry: Optional[str] = None, session: Optional[Session] = None, task_id: Optional[str] = None,
             lease_id_file: Union[str, "os.PathLike[str]", None] = None) -> Lease:
        """Acquires the lock, or several, all or none, and renews the lease until it is released. Use it in a with
        statement.

        ttl       how long the lease lasts without a renewal; the default is 30
        wait      how long to wait in the queue: 0 does not wait, None waits without limit; then LockHeld
        retry     how long to retry while the service cannot be reached, or wait if that is longer; then Unavailable
        margin    how long before its end the lease counts as lost: the time your work needs to stop, at most a third
                  of ttl; the default is a tenth of ttl, at most 5 seconds
        permits   how many permits of a semaphore to acquire, all or none, with mode="permit"; the default is one
        on_expiry  what happens when the lease is not renewed in time: "expire", the default, it ends; "hold", it is lost and
                  not released: the lock is suspect, and granted to no other client until an operator revokes the lease.
                  Not with session
        session   the session that keeps the lease alive, from hold_session. ttl, grace and margin are then those of the
                  session, and on_renewed is not called. Raises SessionLost if the session has ended
        task_id   the thread of work, by which the service finds deadlocks; then Deadlock. The default is a part of the
                  task of the with statement around it or of PADDOCK_TASK, or else a new one
        on_state  is called with held, at_risk or lost, and the error that caused it. Renewals wait until it returns
        on_lost   is called with the loss, from another thread
        on_acquired  is called when the acquire has ended, with the seconds that it took and its error; for metrics
        on_renewed   is called after each attempt to renew, with the share of the ttl that was left and its error; for
                  metrics: with a share near a tenth, the next slow response costs the lease
        interrupt_main  on loss, raise KeyboardInterrupt in the main thread while it is in the with block, which then
                  raises LeaseLost. Only from the main thread, on POSIX; uses SIGURG
        lease_id_file  a file that keeps the lease_id and the holder until the lease is released or lost. A process that takes
                  over the same work, such as a restarted container, goes on with the same lease, token or place in the
                  queue. Use it only where nothing of a process that was killed can go on. Raises LeaseFileInUse while
                  another process uses the file, and refuses a file of other locks. Not with session; on POSIX

        If the wait ends in any way, KeyboardInterrupt included, the place and a lease granted meanwhile are released.
        """
        given = locals()
        return self._hold(Lease, name, {option: given[option] for option in _HOLD})

    def once(self, name: str, work: Callable[[Lease], _R], *, period: Optional[str] = None, time_zone: Optional[str] = None,
             at_least: Optional[float] = None, **options: Any) -> Turn[_R]:
        """Calls work with the lease if no process has done it in this period, and then closes the lock for the rest of the
        period. All processes that may do the work call it, such as the same cron job on several machines. Work that was done
        before is a result, not an error: see Turn.

        period     minute, hour, day, week or month: the work is that of the period in which its lease was granted, on the
                   database's clock. A week begins on Monday
        time_zone  of the period: a name of the IANA database such as Europe/Berlin; the default is UTC
        at_least   for how many seconds the work is done at least, counted from the grant; without a period, exactly for
                   so long. With a period, choose more than the clocks of the machines differ, so that a call just before
                   the end of a period and a call just after it are not two turns

        The options are those of hold, but for mode, capacity and permits. If the work raises, or its process dies, the lock
        stays open, and the next call does the work. While another process does it, raises LockHeld, or waits for wait: until
        the work is done, or to do it after a failure. Raises the errors of hold, and also Unavailable or UnknownOutcome if the
        release at the end is not answered: then the work is done again."""
        closing = closing_of(name, period, time_zone, at_least)
        check_options(options)
        try:
            lease = self._hold(Lease, name, options, once=True)
        except AlreadyDone as e:
            return Turn.before(e)
        with lease:
            result = work(lease)
            lease._closing = closing
        return Turn(True, result)

    def _hold(self, kind: Type[_Lease], name: Locks, options: Mapping[str, Any], once: bool = False) -> _Lease:
        """Returns a lease of this kind. Options that are not given have their defaults. once: for work that is done once."""
        o = {**_HOLD, **options}
        unknown = sorted(set(options) - set(_HOLD))
        if unknown:
            raise TypeError(f"{unknown[0]} is not an option of hold; it has {', '.join(_HOLD)}.")
        session: Optional[Session] = o["session"]
        want = {option: o[option] for option in ("holder", "ttl", "mode", "capacity", "permits", "grace", "max_hold", "on_expiry", "metadata")}
        want["task_id"] = o["task_id"] or new_task()
        want["once"] = once
        if session is not None:
            if o["lease_id_file"] is not None:
                raise invalid("lease_id_file cannot be combined with session: the lease ends with the session; leave it out.")
            check_wait(o["wait"])
            want, margin = session._want(self, want, o["margin"]), session._margin
        else:
            want["ttl"], margin = check_times(o["ttl"], o["margin"], o["wait"], o["retry"])
        check_interrupt(o["interrupt_main"])
        file = None if o["lease_id_file"] is None else LeaseFile(o["lease_id_file"], name)
        want["holder"] = want["holder"] or default_holder()
        began, revoked = self.clock(), session._revoked if session is not None else 0
        try:
            grant = acquire_lease(self, name, want, margin, math.inf if o["wait"] is None else o["wait"], o["retry"], session, file)
        except BaseException as e:
            call(str(name), o["on_acquired"], self.clock() - began, e)
            raise
        try:
            call(str(name), o["on_acquired"], self.clock() - began, None)
            return kind(self, grant, margin, o["on_state"], o["on_lost"], o["interrupt_main"], o["on_renewed"], session, want["task_id"], file, revoked)
        except BaseException:
            ended = abandon(self, name, grant.lease_id)
            if file:
                file.close(ended)
            raise

    def hold_session(self, *, session_id: Optional[str] = None, ttl: Optional[float] = None, retry: float = 10.0,
                     margin: Optional[float] = None, on_state: Optional[Callable[[str, Optional[Exception]], object]] = None,
                     on_lost: Optional[Callable[[SessionLost], object]] = None, interrupt_main: bool = False,
                     on_renewed: Optional[Callable[[float, Optional[Exception]], object]] = None,
                     holder: Optional[str] = None, grace: Optional[float] = None, metadata: Optional[Json] = None) -> Session:
        """Opens a session and renews it until it is closed. Use it in a with statement, and hold locks in it with
        hold(name, session=...). Its renewals keep all of these leases alive, and their number does not depend on that of
        the leases. The arguments have the meanings of those of hold; holder is the default of the leases' holder.

        session_id  a random UUID that you choose; by default this call chooses one. With it and the same holder,
                  another process finds the same session
        """
        lasts, margin = check_times(ttl, margin, retry=retry)
        check_interrupt(interrupt_main)
        grant = open_session(self, {"session_id": session_id, "holder": holder or default_holder(False), "ttl": lasts, "grace": grace, "metadata": metadata},
                             margin, retry)
        return Session(self, grant, margin, on_state, on_lost, interrupt_main, on_renewed, holder)

    def election(self, name: str, **options: Any) -> Election:
        """Returns the election with this name, which is an exclusive lock. The options are those of hold, but for wait,
        mode, capacity, permits and metadata. Sends no request."""
        unknown = sorted(set(options) - (set(_HOLD) - _NOT_IN_ELECTIONS))
        if unknown:
            raise TypeError(f"{unknown[0]} is not an option of an election; see hold, without {', '.join(sorted(_NOT_IN_ELECTIONS))}.")
        return Election(self, name, options)

    def stream(self, *, lock: Optional[str] = None, prefix: Optional[str] = None, cursor: Optional[str] = None,
               on_error: OnError = None, on_gap: Optional[Callable[[str], object]] = None) -> Iterator[Event]:
        """Yields the events of all locks, of one or of those whose names begin with prefix, from the cursor or from now on,
        without end. A stream that breaks is opened again after the last event, elsewhere if there is another address: no
        event is missed without a call of on_gap, with a cursor; read the locks again then. on_error is called with the first error
        of an outage. Raises an error that a retry cannot fix. The id of an event is a cursor, as text."""
        return streams.events(self, lock, prefix, cursor, on_error, on_gap)

    def changes(self, name: str, *, on_error: OnError = None) -> Iterator[Lock]:
        """Yields the lock, and again whenever it was granted or freed, a waiter joined or left, or the metadata was
        replaced, without end. Of several changes in quick succession, it may yield only the last. on_error is called with
        the first error of an outage, after which the lock is yielded again. Raises an error that a retry cannot fix."""
        return streams.changes(self, name, on_error)

