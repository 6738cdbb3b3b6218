"""A session: leases that live and die together on one renewal."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Callable, Dict, List, Optional

from ._acquire import log
from ._answers import Json
from ._calls import Calls, SessionGrant
from ._errors import LeaseLost, Lost, PaddockError, SessionLost, invalid
from ._guard import Guard
from ._hub import JOIN_AFTER, Ends, Watched

if TYPE_CHECKING:
    from ._lease import Lease

MAX_BATCH = 1000  # items


class Session(Guard):
    """A session that is renewed in the background, from Paddock.hold_session. Pass it to Paddock.hold to acquire leases in
    it. A with statement closes it at its end, and raises SessionLost if it was lost. Its leases are lost when it is lost or
    closed, at once: those still held at the end of the block, too. lost, deadline and error are like those of a Lease. It is
    renewed while there is a reference to it or to one of its leases, which it keeps."""

    _LOST = SessionLost
    _OVERDUE = "The session was not renewed in time. Stop all of its work; to continue, open a new one."
    _ENDED = "The session was closed; no work may continue in it."
    _DROPPED = "the session was dropped without a close"

    def __init__(self, paddock: Calls, grant: SessionGrant, margin: float, on_state: Optional[Callable[..., object]],
                 on_lost: Optional[Callable[..., object]], interrupt_main: bool, on_renewed: Optional[Callable[..., object]],
                 holder: Optional[str] = None) -> None:
        self.id: str = grant.session_id  # a secret
        self.ref: str = grant.ref  # the public name
        self._holder = holder  # of its leases, unless they have their own
        self._leases: Dict[str, Lease] = {}  # by lease_id, until they end
        self._lost_leases: List[Lease] = []  # of which the callbacks were not called yet
        self._revoked: int = grant.answer["revoked_leases"]  # in the last answer
        self._search_lock, self._searching, self._search_again = threading.Lock(), False, False  # only the threads that renew and search use it
        super().__init__(f"session {grant.ref}", paddock, grant, margin, on_state, on_lost, interrupt_main, on_renewed)
        self._start()

    def close(self, timeout: float = 5.0) -> None:
        """Closes the session, which releases all of its leases; may be repeated. Stop their work before. Raises SessionLost
        if it was lost: the work may have overlapped. If the service does not respond, retries for timeout seconds, then
        raises Unavailable or UnknownOutcome: the session is no longer renewed and ends with its TTL."""
        self._end(timeout)

    def _want(self, paddock: Calls, want: Json, margin: Optional[float]) -> Json:
        """Returns the arguments of an acquire in this session."""
        if paddock is not self._paddock:
            raise invalid("The session belongs to another Paddock; call hold of that one.")
        if any(value is not None for value in (want["ttl"], want["grace"], margin)):
            raise invalid("ttl, grace and margin are those of the session; leave them out.")
        return {**want, "session_id": self.id, "holder": want["holder"] or self._holder}

    def _join(self, lease: Lease) -> None:
        self._leases[lease._granted.lease_id] = lease
        if self._losses and self._leases.pop(lease._granted.lease_id, None):  # else _lose has taken it
            lease._lose(self._loss_of_lease())
            lease._notify_in_thread()

    def _loss_of_lease(self) -> Lost:
        why = self._losses[0]
        loss = LeaseLost("lease_lost", f"The lease ended with its session. {why.detail}", why.status, why.fields)
        loss.__cause__ = why
        return loss

    def _lose(self, why: Lost) -> None:
        if not self._losses:
            self._losses.append(why)
        while self._leases:
            with contextlib.suppress(KeyError):  # another thread takes them as well
                _, lease = self._leases.popitem()
                self._lost_leases.append(lease)
                lease._lose(self._loss_of_lease())
        super()._lose(why)

    def _notify_state(self, state: str, error: Optional[Exception]) -> None:
        super()._notify_state(state, error)
        for lease in list(self._leases.values()):
            lease._notify_state(state, error)

    def _notify_loss(self) -> None:
        while self._lost_leases:
            self._lost_leases.pop()._notify_in_thread()
        super()._notify_loss()

    def _watched(self) -> Watched:
        old = self._paddock.clock() - JOIN_AFTER
        held = [lease for lease in list(self._leases.values()) if lease._granted.sent <= old]
        return Watched(frozenset(end for lease in held for end in lease._watched().leases), self.ref)

    def hint(self, ended: Ends = frozenset(), within: float = 0.0) -> None:
        """Renews within these seconds, and then asks for those of its leases that may have ended without the session."""
        for lease in list(self._leases.values()):
            if ended & lease._watched().leases:
                lease._held_at = min(lease._held_at, 0) - 1  # another number for each hint: an earlier answer does not settle it
        super().hint(ended, within)

    def _send_renewal(self, timeout: float) -> SessionGrant:
        grant = self._paddock.renew_session(self.id, timeout=timeout)
        self._revoked = grant.answer["revoked_leases"]
        with self._search_lock:
            self._search_again = self._searching
            if not self._searching and self._suspects():
                self._searching = True
                threading.Thread(target=self._search, name="paddock session", daemon=True).start()
        return grant

    def _suspects(self) -> List[Lease]:
        """Returns the leases that may have ended: an operator has revoked some."""
        return [lease for lease in list(self._leases.values()) if lease._held_at < self._revoked]

    def _search(self) -> None:
        """Searches for lost leases until there was no renewal meanwhile: one search at a time."""
        try:
            while self._searching:
                self._find_lost(self._suspects(), self._revoked)
                with self._search_lock:
                    self._searching, self._search_again = self._search_again, False
        except Exception:
            self._searching = False  # the next renewal tries again
            raise

    def _find_lost(self, suspects: List[Lease], revoked: int) -> None:
        """Asks for each lease whether it has ended. Of several locks, which end together, it asks for the first: while that
        is held, the answer is lease_in_set."""
        for start in range(0, len(suspects), MAX_BATCH):
            chunk = suspects[start:start + MAX_BATCH]
            before = [lease._held_at for lease in chunk]
            try:
                answer = self._paddock.batch([{"op": "renew", "name": lease.name, "lease_id": lease._granted.lease_id} for lease in chunk])
            except PaddockError as e:  # the next renewal tries again
                log.debug("%s: cannot find out which lease has ended: %s", self._label, e)
                return
            for lease, held_at, result in zip(chunk, before, answer["results"]):
                problem = result.get("problem") or {}
                if result["status"] == 200 or problem.get("code") == "lease_in_set":
                    lease._held_at = revoked if lease._held_at == held_at else lease._held_at  # else a hint came after the question
                elif problem.get("code") == "lease_lost" and self._leases.pop(lease._granted.lease_id, None):
                    lease._lose(LeaseLost("lease_lost", str(problem.get("detail")), result["status"], problem))
                    lease._notify_in_thread()

    def _send_release(self, timeout: float) -> None:
        self._paddock.close_session(self.id, timeout=timeout)
