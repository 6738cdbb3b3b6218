"""A lease that is renewed until it is released."""

from __future__ import annotations

import calendar
import math
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence

from ._acquire import abandon
from ._answers import Json
from ._arguments import Locks, wrong_type
from ._calls import Calls, Grant
from ._errors import LeaseLost, Lost
from ._guard import LOST, RELEASED, Guard
from ._hub import Watched
from ._lease_file import LeaseFile
from ._process import run

if TYPE_CHECKING:
    from ._session import Session


class Lease(Guard):
    """A lease that is renewed in the background, from Paddock.hold. A with statement releases it at its end, and
    raises LeaseLost if it was lost: the work may have overlapped with another holder's. lost is an event that is set
    when the lease is lost or released: no work may continue under it. deadline is an instant on the Paddock's clock.
    error says why the lease is at risk or lost. A lease without any reference to it is no longer renewed.
    A lease of a session has the state and the deadline of the session, and is lost when that is lost or closed.
    A lease of several locks is renewed, lost and released as a whole. name, token and slot are those of the first lock, in
    the order of the names; tokens and slots have those of each: a list of slots, of which several permits have one each."""

    def __init__(self, paddock: Calls, grant: Grant, margin: float, on_state: Optional[Callable[..., object]],
                 on_lost: Optional[Callable[..., object]], interrupt_main: bool, on_renewed: Optional[Callable[..., object]] = None,
                 session: Optional[Session] = None, task_id: str = "", file: Optional[LeaseFile] = None,
                 held_at: int = 0) -> None:
        self.name: str = grant.name
        self.token: int = grant.token
        self.slot: int = grant.slot
        self.tokens: Dict[str, int] = grant.tokens
        self.slots: Dict[str, List[int]] = grant.slots
        self._locks: Locks = list(grant.tokens) if len(grant.tokens) > 1 else grant.name
        self._granted, self._session, self._has_thread, self._file = grant, session, True, file
        self._stays = grant.answer.get("on_expiry") == "hold"
        if self._stays:
            self._OVERDUE = "The lease was not renewed in time. Stop the work. The lock becomes suspect: no other client is granted it " \
                            "until an operator has looked at the work and revokes the lease."
        self._held_at = held_at  # the session's number of revoked leases when it was last known to be held; below 0 after a hint
        if session is not None:
            self._OVERDUE = "The lease has reached its max_hold. Stop the work; to continue, acquire again."
        super().__init__(", ".join(grant.tokens), paddock, grant, margin, on_state, on_lost, interrupt_main, on_renewed)
        self.task_id = task_id
        if session is None:
            self._start()
            return
        self._deadline = _max_hold_end(grant) - margin
        self._has_thread = self._deadline < math.inf
        session._join(self)
        if self._has_thread:
            self._start_threads((self.lost, "_check_deadline", "_notify_loss"))

    @property
    def error(self) -> Optional[Exception]:
        """Why the lease is at risk, lost or released."""
        at_risk = self._failure if self._session is None else self._session._failure
        return self._losses[0] if self._losses else at_risk

    @property
    def deadline(self) -> float:
        """The instant, on the Paddock's clock, from which the lease counts as lost unless it or its session is renewed."""
        return self._deadline if self._session is None else min(self._deadline, self._session.deadline)

    def release(self, timeout: float = 5.0) -> None:
        """Releases the lease; may be repeated. Raises LeaseLost if it was lost: the work may have overlapped.
        If the service does not respond, retries for timeout seconds, then raises Unavailable or UnknownOutcome: the
        lease is no longer renewed and ends with its TTL, or with its session. With on_expiry="hold" a lost lease is not
        released, so that the lock is suspect."""
        self._end(timeout)

    def set_metadata(self, metadata: Json, *, timeout: Optional[float] = None) -> None:
        """Replaces the metadata, which every reader of the lock sees. Raises LeaseLost if the lease has ended. It may be
        repeated, and does not move the deadline."""
        if not isinstance(metadata, dict):
            raise wrong_type("metadata", metadata, "a dict")
        self.check()
        try:
            self._paddock.renew(self._locks, self._granted.lease_id, metadata=metadata, timeout=timeout)
        except LeaseLost as e:
            self._lose(e)
            self._notify_in_thread()
            raise

    def run(self, argv: Sequence[str], *, kill_after: Optional[float] = None, **popen: Any) -> int:
        """Runs a child process under the lease and returns its exit code, or -N if signal N killed it.
        The child leads its own process group. Before another holder can get the lock, the group gets SIGTERM and,
        after kill_after seconds, SIGKILL; if the lease has already ended, both immediately. Then LeaseLost is raised.
        The default kill_after is half the margin, the maximum a third of the ttl. When the child ends or an exception
        is raised, the rest of the group is stopped in the same way; processes that left the group are not. The child's
        environment has PADDOCK_LOCK, _FENCING_TOKEN, _LEASE_HOLDER, _URL and, if there is one, _SLOT; and of all locks, _LOCKS,
        _FENCING_TOKENS and _SLOTS, such as "a b" and "a=10496 b=10496". popen goes to subprocess.Popen. If this process is
        killed, the child continues without a guard. POSIX only."""
        return run(self, argv, kill_after, popen)

    def _check_deadline(self) -> float:
        if self._session is not None and self._session._check_deadline() <= 0:
            self._lose(self._session._loss_of_lease())
        return super()._check_deadline()

    def _lose(self, why: Lost) -> None:
        super()._lose(why)
        if self._pid == os.getpid() and self.state == LOST:
            self._close_file(True)  # its work may still run when the next process begins
        if self._session is not None:
            self._session._leases.pop(self._granted.lease_id, None)

    def _notify_in_thread(self) -> None:
        if (self._on_lost or self._on_state or self._interrupt_main) and not self._has_thread:
            threading.Thread(target=self._notify_loss, name="paddock lease", daemon=True).start()

    def _watched(self) -> Watched:
        return Watched(frozenset((name, token, self.slots[name][0]) for name, token in self.tokens.items()))

    def _send_renewal(self, timeout: float) -> Grant:
        return self._paddock.renew(self._locks, self._granted.lease_id, timeout=timeout)

    def _send_release(self, timeout: float) -> None:
        if self._stays and self.state == LOST:
            self._raise_loss()  # a release would hand the half-done work to the next client
        closing = self._closing if self.state == RELEASED else {}  # of a lost lease, the work may have overlapped
        try:
            self._paddock.release(self._locks, self._granted.lease_id, **closing, timeout=timeout)
        except LeaseLost:
            self._close_file(True)
            raise
        self._close_file(True)

    def _end(self, timeout: float) -> None:
        try:
            super()._end(timeout)
        finally:
            if self._pid == os.getpid():
                self._close_file(False)  # unless it was closed because the lease has ended

    def _close_file(self, ended: bool) -> None:
        if self._file is not None:
            self._file.close(ended)

    def _abandon(self) -> None:
        """Gives it up before the caller got it."""
        self._lose(self._released)
        self._close_file(abandon(self._paddock, self._locks, self._granted.lease_id))


def _max_hold_end(grant: Grant) -> float:
    """Returns when the lease of a session ends by its max_hold, on the Paddock's clock."""
    if grant.answer.get("max_hold_ms") is None:
        return math.inf
    acquired, expires = _instant(grant.answer["acquired_at"]), _instant(grant.answer["expires_at"])
    return grant.until + acquired + grant.answer["max_hold_ms"] / 1000 - expires  # which may be the end of the session


def _instant(text: str) -> float:
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float(f"0{text[19:-1]}")
