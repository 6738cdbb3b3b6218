"""Elections: one leader at a time under a name, who publishes a value, such as its address, in the lease's metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, Mapping, Optional, cast

from ._answers import Json, Lock
from ._arguments import wrong_type
from ._errors import PaddockError, invalid
from ._lease import Lease
from ._streams import OnError

if TYPE_CHECKING:
    from ._client import Paddock

MAX_VALUE = 4096  # bytes of the metadata


@dataclass(frozen=True)
class Leader:
    """The leader as of a time in the past. token grows with each term; since is an instant on the database's clock."""

    holder: str
    value: str
    token: int
    since: str


class Term(Lease):
    """The lease of an elected leader. Its token grows with each term."""

    def proclaim(self, value: str, *, timeout: Optional[float] = None) -> None:
        """Changes the leader's value. Observers may miss a value that is soon replaced, but never the last one."""
        self.set_metadata(metadata_of(value), timeout=timeout)

    def resign(self, timeout: float = 5.0) -> None:
        """Ends the term like release. The next candidate is elected immediately."""
        self.release(timeout)


class Election:
    """An election, from Paddock.election. By the time a process acts on the result of an election, another leader may
    have been elected: use the token of the term to fence what two leaders must not both do."""

    def __init__(self, paddock: Paddock, name: str, options: Mapping[str, Any]) -> None:
        self.name: str = name
        self._paddock, self._options = paddock, options

    def campaign(self, value: str, *, wait: Optional[float] = None) -> Term:
        """Waits until it is elected, without limit unless wait says how long; then LockHeld. Candidates are elected in
        the order in which they joined. If the wait ends in any way, the candidate has withdrawn."""
        options = {**self._options, "metadata": metadata_of(value), "wait": wait}
        return cast(Term, self._paddock._hold(Term, self.name, options))

    def leader(self) -> Optional[Leader]:
        """Returns the current leader, None if there is none."""
        return leader_of(self._paddock.lock(self.name))

    def observe(self, *, on_error: OnError = None) -> Iterator[Optional[Leader]]:
        """Yields the current leader, None if there is none, and then each change of the leader or of its value. Of several
        changes in quick succession, it may yield only the last. When the service is unreachable, on_error is called once
        with the error, and the leader yielded before may be outdated; after the outage the leader is yielded again, even
        if it has not changed. Raises an error that a retry cannot fix."""
        outages = [0]

        def failed(error: PaddockError) -> None:
            outages[0] += 1
            if on_error is not None:
                on_error(error)

        last: object = ()  # nothing was yielded
        for lock in self._paddock.changes(self.name, on_error=failed):
            leader = leader_of(lock)
            said = (outages[0], leader and (leader.token, leader.value))
            if said != last:
                last = said
                yield leader


def metadata_of(value: str) -> Json:
    if not isinstance(value, str):
        raise wrong_type("value", value, "text")
    metadata = {"value": value}
    size = len(json.dumps(metadata, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
    if size > MAX_VALUE:
        raise invalid(f"value has {size} bytes as JSON; at most {MAX_VALUE} are allowed.")
    return metadata


def leader_of(lock: Lock) -> Optional[Leader]:
    """Returns the leader according to the lock. A lease in its grace period does not make a leader, although it can
    still be renewed."""
    if lock["state"] != "held" or lock["leases"][0]["mode"] != "exclusive":
        return None
    lease = lock["leases"][0]
    value = lease.get("metadata", {}).get("value")
    return Leader(lease["holder"], value if isinstance(value, str) else "", lease["fencing_token"], lease["acquired_at"])
