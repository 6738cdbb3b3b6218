"""The answers of the service, as types. An answer is the dict that the service sent, so it may have members that are newer than
this package. Members that are not always there are NotRequired: read them with get. Instants are text on the database's
clock, such as 2026-01-02T03:04:05.678901Z; milliseconds are whole numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

Json = Dict[str, Any]


class LeaseInfo(TypedDict):
    """A lease as anybody may see it: without its lease_id."""

    name: NotRequired[str]
    slot: int
    slots: NotRequired[List[int]]
    mode: str
    holder: str
    fencing_token: int
    acquired_at: str
    expires_at: str
    expires_in_ms: int
    grace_ms: int
    metadata: NotRequired[Json]
    on_expiry: NotRequired[str]
    suspect: NotRequired[bool]
    revoked: NotRequired[bool]
    session: NotRequired[str]
    set: NotRequired[List[str]]


class Closure(TypedDict):
    """How a release has closed a lock."""

    until: str
    holder: str
    done_at: str


class Freeze(TypedDict):
    """A freeze. Without until it lasts until it is ended."""

    scope: str
    reason: str
    frozen_by: NotRequired[str]
    frozen_at: str
    until: NotRequired[str]


class FreezeStatus(Freeze):
    """A freeze, and how many leases are left: at 0 the work that the locks guard has stopped."""

    leases: int
    as_of: str


class FreezeList(TypedDict):
    freezes: List[Freeze]


class Rule(TypedDict):
    """A rule. A bound that is absent bounds nothing."""

    scope: str
    max_ttl_ms: NotRequired[int]
    max_hold_ms: NotRequired[int]
    min_grace_ms: NotRequired[int]
    capacity: NotRequired[int]
    max_leases: NotRequired[int]
    set_by: NotRequired[str]
    set_at: str


class RuleList(TypedDict):
    rules: List[Rule]


class CellGroup(TypedDict):
    """A group of locks that was moved to a cell. Its calls wait while it is moving."""

    name: str
    moving: bool


class Cell(TypedDict):
    """One of the databases of a service that has several. away says why it cannot be used at present."""

    name: str
    position: int
    takes: bool
    away: NotRequired[str]
    epoch: NotRequired[int]
    groups: List[CellGroup]


class CellList(TypedDict):
    cells: List[Cell]


class Lock(TypedDict):
    """A lock. state is "free", "held", "grace" or "suspect"."""

    name: str
    state: str
    revision: int
    fencing_token: int
    capacity: NotRequired[int]
    as_of: str
    changed_at: NotRequired[str]
    waiters: int
    waiters_below: NotRequired[int]
    leases: List[LeaseInfo]
    closed: NotRequired[Closure]
    frozen: NotRequired[Freeze]
    above: NotRequired[List[LeaseInfo]]
    below: NotRequired[List[LeaseInfo]]


class Unreadable(TypedDict):
    """Something that the service could not read and left out."""

    name: NotRequired[str]
    detail: str


class LockPage(TypedDict):
    locks: List[Lock]
    next_cursor: NotRequired[str]
    unreadable: NotRequired[List[Unreadable]]


class DeadlockStep(TypedDict):
    """A call that waits for the next one of a circle or of a chain."""

    name: str
    holder: str
    waits_for: str
    at: NotRequired[str]
    ahead: NotRequired[bool]


class WaitChain(TypedDict):
    end: str
    steps: List[DeadlockStep]


class Waiter(TypedDict):
    """A waiter. blocked_by is "holders", "closed", "paused", "queue" or "disconnected"."""

    position: int
    place: int
    name: NotRequired[str]
    mode: str
    capacity: NotRequired[int]
    permits: NotRequired[int]
    holder: str
    joined_at: str
    waited_ms: int
    attached: bool
    place_kept_ms: NotRequired[int]
    ahead: int
    blocked_by: str
    blocked_at: NotRequired[str]
    leases: List[LeaseInfo]
    set: NotRequired[List[str]]


class Queue(TypedDict):
    name: str
    revision: int
    as_of: str
    waiters: List[Waiter]
    chain: NotRequired[WaitChain]


class Event(TypedDict):
    """A transition of a lock. kind is "granted", "released", "expired", "revoked", "queued", "dequeued", "withdrawn",
    "metadata_updated", "refused", "frozen", "thawed", "opened" or "suspected". by is the name, or the id, of the API key
    whose call caused it."""

    id: int
    at: str
    lock: str
    slot: int
    slots: NotRequired[List[int]]
    revision: int
    kind: str
    mode: str
    holder: str
    fencing_token: NotRequired[int]
    place: NotRequired[int]
    reason: NotRequired[str]
    by: NotRequired[str]
    session: NotRequired[str]
    set: NotRequired[List[str]]
    trace_id: NotRequired[str]
    late_ms: NotRequired[int]
    until: NotRequired[str]
    held_by: NotRequired[str]
    newest_token: NotRequired[int]
    cycle: NotRequired[List[DeadlockStep]]


class EventPage(TypedDict):
    """gap says that events before these are missing: read the locks again. searched_to says that the search has come so
    far, and goes on with next_cursor."""

    events: List[Event]
    next_cursor: NotRequired[str]
    gap: NotRequired[bool]
    searched_to: NotRequired[str]
    ended_sessions: NotRequired[List[str]]
    unreadable: NotRequired[List[Unreadable]]


class Hold(TypedDict):
    """Who held a lock, and when."""

    slot: int
    slots: NotRequired[List[int]]
    mode: str
    holder: str
    fencing_token: int
    granted_at: NotRequired[str]
    ended_at: NotRequired[str]
    end: NotRequired[str]
    reason: NotRequired[str]
    revoked_by: NotRequired[str]


class HoldList(TypedDict):
    name: str
    holds: List[Hold]
    complete: bool


class SessionLock(TypedDict):
    """A lease of a session, or its place in a queue."""

    name: str
    mode: str
    slot: NotRequired[int]
    slots: NotRequired[List[int]]
    fencing_token: NotRequired[int]
    place: NotRequired[int]


class SessionInfo(TypedDict):
    """A session as anybody may see it: without its session_id. ended says how it ended."""

    session: str
    holder: str
    ttl_ms: int
    grace_ms: int
    opened_at: str
    expires_at: str
    expires_in_ms: int
    as_of: str
    leases: int
    places: int
    locks: NotRequired[List[SessionLock]]
    metadata: NotRequired[Json]
    ended: NotRequired[str]
    ended_at: NotRequired[str]
    reason: NotRequired[str]
    revoked_by: NotRequired[str]


class SessionPage(TypedDict):
    sessions: List[SessionInfo]
    next_cursor: NotRequired[str]
    unreadable: NotRequired[List[Unreadable]]


class Tree(TypedDict):
    root: str
    declared_at: str


class TreeList(TypedDict):
    trees: List[Tree]


class TokenVerification(TypedDict):
    """The status of a token: "current", "ended", "stale" or "unknown"."""

    name: str
    fencing_token: int
    status: str
    current: bool
    newest_token: int
    checked_at: str
    expires_in_ms: NotRequired[int]


class FencedValue(TypedDict):
    key: str
    lock: str
    fencing_token: int
    value: Any
    version: int
    written_at: str


class BatchResult(TypedDict):
    """The result of one item: its status, and its lease or its problem document."""

    status: int
    lease: NotRequired[Json]
    problem: NotRequired[Json]


class BatchResults(TypedDict):
    results: List[BatchResult]
