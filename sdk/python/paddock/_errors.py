"""What can go wrong. Branch on the class of an error or on its code, which is stable."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Type

UNCHANGED = "Nothing was changed. Try again."
MAYBE_CHANGED = "The call may or may not have taken effect. Send the same call again to find out; do not treat the lease as lost."


class PaddockError(Exception):
    """An error of the service or of the network. detail says what happened and what to do next; status is the HTTP
    status, or None without a response; fields has the members of the problem document. __cause__ is the network error."""

    def __init__(self, code: str, detail: str, status: Optional[int] = None, fields: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(code, detail, status, fields)
        self.code: str = code
        self.detail: str = detail
        self.status: Optional[int] = status
        self.fields: Dict[str, Any] = fields or {}

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    @property
    def holder(self) -> Optional[str]:
        """The holder of the lock, if the code has one."""
        return self.fields.get("holder")

    @property
    def retry_after(self) -> float:
        """When to retry, in seconds from now; zero if unknown."""
        return float(self.fields.get("retry_after_ms") or 0) / 1000

    @property
    def transient(self) -> bool:
        """Whether the failure is temporary and the same call may succeed later."""
        limited = self.status == 429 and self.code != "too_many_leases"  # which ends when the session releases some
        return limited or (self.status or 0) >= 500 or isinstance(self, (Unavailable, UnknownOutcome))


class InvalidRequest(PaddockError, ValueError):
    """An argument is invalid; see detail. An argument of a wrong type is a TypeError."""


class LockHeld(PaddockError):
    """Another holder has the lock, or one of the locks; see holder and retry_after."""

    @property
    def suspect(self) -> bool:
        """Whether the lock, or one of several, is suspect: an operator must look at the work and revoke its lease."""
        return self.fields.get("suspect") is True

    @property
    def blockers(self) -> List[Dict[str, Any]]:
        """Of several locks, or in a tree, those in the way: each with name, retry_after_ms and, where known, holder,
        suspect and ahead."""
        return self.fields.get("blockers") or []


class AlreadyDone(PaddockError):
    """A release has closed the lock, because its work is done: by holder, at done_at. retry_after says when the lock opens."""

    @property
    def done_at(self) -> Optional[str]:
        """When the work was done, on the database's clock."""
        return self.fields.get("done_at")


class LockFrozen(PaddockError):
    """An operator has stopped new grants of the lock; retry_after says how long. Existing leases stay valid."""

    @property
    def reason(self) -> Optional[str]:
        """Why, as the operator wrote it."""
        return self.fields.get("reason")

    @property
    def frozen_by(self) -> Optional[str]:
        """The name of the API key that froze the lock; None at a service without keys."""
        return self.fields.get("frozen_by")

    @property
    def frozen_until(self) -> Optional[str]:
        """When the freeze ends by itself, an instant on the database's clock; None: never."""
        return self.fields.get("frozen_until")


class Deadlock(PaddockError):
    """The call waited in a circle of calls that wait for each other, and gave way: release what you hold, and begin again."""

    @property
    def cycle(self) -> List[Dict[str, Any]]:
        """The circle, this call first: each with the name of the lock, the holder of the call, waits_for (the holder in
        the way), at (that one's lock, if it is another one of a tree) and, if that one only waits ahead in the queue, ahead."""
        return self.fields.get("cycle") or []


class Lost(PaddockError):
    """A lease or a session has ended or is about to end: LeaseLost or SessionLost."""

    @property
    def ended(self) -> Optional[str]:
        """How it ended, if the service said so: "released", "expired" or "revoked"."""
        return self.fields.get("ended")

    @property
    def reason(self) -> Optional[str]:
        """Why it was revoked, as the operator wrote it."""
        return self.fields.get("reason")

    @property
    def revoked_by(self) -> Optional[str]:
        """The name of the API key that revoked it; None if it was not revoked, or at a service without keys."""
        return self.fields.get("revoked_by")


class LeaseLost(Lost):
    """The lease has ended or is about to end: stop the work."""


class SessionLost(Lost):
    """The session has ended or is about to end, and its leases with it: stop all of its work, then open a new one."""


class StaleToken(PaddockError):
    """A greater token has been granted or seen: the lease is lost; stop the work."""


class NotAllowed(PaddockError):
    """The API key is missing, unknown or expired (status 401), or does not allow this call (403); see code. Use
    another key. It does not mean that a lease is lost."""


class LeaseFileInUse(PaddockError):
    """Another process uses this lease_id_file now, so the same work is being done already."""


class Unavailable(PaddockError):
    """A temporary failure; nothing was changed. Retry. It does not mean that a lease is lost."""


class UnknownOutcome(PaddockError):
    """The call may or may not have taken effect; send it again to find out. It does not mean that a lease is lost."""


CLASSES: Mapping[str, Type[PaddockError]] = {
    "invalid_request": InvalidRequest, "lock_held": LockHeld, "already_done": AlreadyDone, "lock_frozen": LockFrozen, "deadlock": Deadlock, "lease_lost": LeaseLost,
    "session_lost": SessionLost, "stale_token": StaleToken,
    "key_missing": NotAllowed, "key_invalid": NotAllowed, "key_expired": NotAllowed, "role_missing": NotAllowed, "name_not_allowed": NotAllowed,
    "unavailable": Unavailable, "unknown_outcome": UnknownOutcome, "internal": PaddockError,
}

_OPTIONS = {"ttl_ms": "ttl", "grace_ms": "grace", "wait_ms": "wait", "max_hold_ms": "max_hold", "fencing_token": "token",
            "closed_ms": "closed", "for_ms": "duration", "max_ttl_ms": "max_ttl", "min_grace_ms": "min_grace"}


def invalid(detail: str) -> InvalidRequest:
    return InvalidRequest("invalid_request", detail)


def in_arguments(code: str, detail: str) -> str:
    """Returns the service's text with the names of this package. What a holder or an operator has written stays."""
    if code == "invalid_request":
        return named_as_written(detail)
    return re.sub(r"or wait with wait_ms( \(not in a batch\))?\.", "or wait for it with wait (seconds).", detail)


def named_as_written(detail: str) -> str:
    """Returns the service's text about an argument with the names and the unit of this package: ttl in seconds, not ttl_ms."""
    bounds = re.match(r"(\w+)_ms is (-?\d+|too \w+); give (\d+) to (\d+)(?: \(milliseconds\))?", detail)
    if bounds:
        name, given, least, most = bounds.groups()
        given = given if given.startswith("too") else f"{int(given) / 1000:.10g}"
        name = _OPTIONS.get(f"{name}_ms", name)
        return f"{name} is {given}; give {int(least) / 1000:.10g} to {int(most) / 1000:.10g} (seconds)" + detail[bounds.end():]
    return re.sub(r"\b[a-z]+(_[a-z]+)+\b", lambda member: _OPTIONS.get(member.group(), member.group()), detail)
