"""Paddock: distributed locks with fencing tokens, over HTTP.

    from paddock import LockHeld, Paddock

    with Paddock("http://127.0.0.1:8080") as paddock:
        try:
            with paddock.hold("jobs:nightly", ttl=30) as lease:
                for row in rows:
                    lease.check()            # raises LeaseLost in time
                    write(row, lease.token)  # the token is checked where the write happens
        except LockHeld as held:
            print(f"{held.holder} does it")

Standard library only, Python 3.9 or newer: install the package or copy its folder. Durations are in seconds. A Paddock
is safe for use by multiple threads; paddock.aio has one for asyncio. Each of its methods sends one request; hold,
once, hold_session and election are the guards built on them. A session keeps the leases that are acquired in it alive by one
renewal for all of them; they end together. Several locks are acquired together, all or none, by a list instead of a
name; see Locks.

The guard chooses the lease_id and repeats an acquire whose response is lost, so no unknown lease remains. A long wait
takes several calls, which keep one place. They ask for a ttl of 5 seconds at most, and the first renewal, before hold
returns, for the whole: if the process was stopped while it waited, the lock is free within seconds. One thread renews
the lease every third of its TTL, or slightly sooner; another checks the clock; a third, one for all leases of a Paddock,
hears of revocations at once. A lease of a session needs no thread of its own.

Python cannot stop a thread, so the work must call check(), watch the event lost, run as a child process (run) or be
interrupted in the main thread (interrupt_main); an asyncio task is cancelled. No client can close the gap between a check
and a write: check the token where the write happens. After a fork, the child does not renew; check() passes until the
deadline at the fork.

The files: transport (HTTP, addresses), calls (the API), acquire (retries and waits), guard, lease and session (renewals,
deadlines), hub (hints), once, streams, election, process, lease_file, policy; and aio, on threads.
"""

from ._answers import (
    BatchResult, BatchResults, Cell, CellGroup, CellList, Closure, DeadlockStep, Event, EventPage, FencedValue, Freeze, FreezeList, FreezeStatus,
    Hold, HoldList, LeaseInfo, Lock, LockPage, Queue, Rule, RuleList, SessionInfo, SessionLock, SessionPage, TokenVerification, Tree, TreeList, Unreadable, WaitChain, Waiter,
)
from ._arguments import Locks
from ._calls import Grant, SessionGrant
from ._client import Paddock
from ._clock import SuspendClock
from ._election import Election, Leader, Term
from ._errors import (
    AlreadyDone, Deadlock, InvalidRequest, LeaseFileInUse, LeaseLost, LockFrozen, LockHeld, Lost, NotAllowed, PaddockError, SessionLost,
    StaleToken, Unavailable, UnknownOutcome,
)
from ._fence import fence
from ._guard import AT_RISK, HELD, LOST, RELEASED
from ._lease import Lease
from ._once import Turn
from ._session import Session
from ._transport import VERSION as __version__

__all__ = [
    "AT_RISK", "AlreadyDone", "BatchResult", "BatchResults", "Cell", "CellGroup", "CellList", "Closure", "Deadlock",
    "DeadlockStep", "Election", "Event", "EventPage", "FencedValue", "Freeze", "FreezeList", "FreezeStatus", "Grant", "HELD", "Hold", "HoldList", "InvalidRequest",
    "LOST", "Leader", "Lease", "LeaseFileInUse", "LeaseInfo", "LeaseLost", "Lock", "LockFrozen", "LockHeld", "LockPage",
    "Locks", "Lost", "NotAllowed", "Paddock", "PaddockError", "Queue", "RELEASED", "Rule", "RuleList", "Session",
    "SessionGrant", "SessionInfo", "SessionLock", "SessionLost", "SessionPage", "StaleToken", "SuspendClock", "Term",
    "TokenVerification", "Tree", "TreeList", "Turn", "Unavailable", "UnknownOutcome", "Unreadable", "WaitChain", "Waiter",
    "__version__", "fence",
]
