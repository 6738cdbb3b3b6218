"""The calls of the HTTP API: each sends one request and checks that the answer belongs to it."""

from __future__ import annotations

import contextlib
import contextvars
import json
import os
import re
import socket
import sys
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union, cast

from . import _answers as answers
from ._answers import Json
from ._arguments import Locks, lock_path, members, modes, ms, names_of, path, query, seconds, wrong_type
from ._clock import default_clock
from ._errors import CLASSES, MAYBE_CHANGED, UNCHANGED, InvalidRequest, PaddockError, Unavailable, UnknownOutcome, in_arguments
from ._hub import Hub
from ._policy import Policy
from ._transport import TLS, Broken, Key, Request, Response, Transport, WaitCut

MAX_HOLDER = 200  # characters
# The statuses with which a proxy rejects a request before it forwards it.
_REJECTED_BY_PROXY = frozenset({401, 403, 404, 405, 413, 415, 429, 431})

caller: contextvars.ContextVar[str] = contextvars.ContextVar("paddock caller", default="")  # the asyncio task that a thread works for


@dataclass(frozen=True)
class Grant:
    """A lease as returned by a call; answer has all members of the response. name, token and slot are those of the first
    lock, in the order of the names, if it is the lease of several."""

    name: str
    lease_id: str = field(repr=False)  # the secret that proves ownership
    token: int
    slot: int
    ttl: float
    expires_in: float  # counted from sent
    sent: float  # when the request was sent, on the Paddock's clock
    answer: Json = field(repr=False, compare=False)

    @property
    def until(self) -> float:
        """The earliest instant, on the Paddock's clock, at which the lease can end, without a margin."""
        return self.sent + self.expires_in

    @property
    def tokens(self) -> Dict[str, int]:
        """The token of each lock, in the order of the names. Only a shared lock that has joined readers has another."""
        return {lock["name"]: lock["fencing_token"] for lock in self.answer.get("locks", ())} or {self.name: self.token}

    @property
    def slots(self) -> Dict[str, List[int]]:
        """The slots of each lock, in the order of the names: one, unless it has several permits."""
        return {lock.get("name", self.name): lock.get("slots", [lock["slot"]]) for lock in self.answer.get("locks", (self.answer,))}


@dataclass(frozen=True)
class SessionGrant:
    """A session as returned by a call; answer has all members of the response."""

    session_id: str = field(repr=False)  # the secret with which leases are acquired in the session
    ref: str  # its public name
    ttl: float
    expires_in: float  # counted from sent
    sent: float  # when the request was sent, on the Paddock's clock
    answer: Json = field(repr=False, compare=False)

    @property
    def until(self) -> float:
        """The earliest instant, on the Paddock's clock, at which the session can end, without a margin."""
        return self.sent + self.expires_in


class Calls(Policy):
    """The single calls of a Paddock: one request each, without retries or renewals."""

    def __init__(self, base_url: Optional[str] = None, *, base_urls: Optional[Sequence[str]] = None,
                 key: Union[str, Callable[[], str], None] = None, timeout: float = 10.0, headers: Optional[Mapping[str, str]] = None,
                 tls: TLS = None, clock: Optional[Callable[[], float]] = None) -> None:
        if seconds("timeout", timeout) is None or timeout <= 0:
            raise ValueError("timeout must be above 0")
        self.base_urls: List[str] = _urls(base_url, base_urls)
        self.timeout: float = timeout
        self.clock: Callable[[], float] = clock or default_clock()
        self._transport = Transport(self.base_urls, headers or {}, tls, Key(key, headers or {}))

    _hub: Optional[Hub] = None

    @property
    def hub(self) -> Hub:
        """The long call that hears of losses, for the guards."""
        if self._hub is None or self._hub._pid != os.getpid():
            self._hub = Hub(self)
        return self._hub

    @property
    def longest_wait(self) -> float:
        """How long one call of a guard waits, at most: 10 seconds, or less where something cuts longer waits."""
        return self._transport.waits.longest

    @property
    def several_addresses(self) -> bool:
        """Whether there is another address to try."""
        return self._transport.several

    def close(self) -> None:
        """Closes the kept connections. The Paddock can still be used, and then opens a connection for each call."""
        self._transport.close()

    def acquire(self, name: Locks, *, lease_id: Optional[str] = None, wait: float = 0.0, keep_place: bool = False,
                timeout: Optional[float] = None, holder: Optional[str] = None, ttl: Optional[float] = None,
                mode: str = "exclusive", capacity: Optional[int] = None, permits: Optional[int] = None,
                grace: Optional[float] = None, max_hold: Optional[float] = None, on_expiry: Optional[str] = None,
                session_id: Optional[str] = None, metadata: Optional[Json] = None, task_id: Optional[str] = None, once: bool = False) -> Grant:
        """Acquires the lock, or several, all or none: they have one lease_id, and hold nothing while they wait. Raises
        LockHeld if they are not granted within wait, which is at most 50. Choose the lease_id, a random UUID, yourself, to
        be able to send the call again after UnknownOutcome. It then keeps its place in the queue until wait is over if the
        call is interrupted: release it if you do not call again. keep_place keeps it for ten seconds after a wait that
        ended without a grant. Without a lease_id, the service chooses one. After a wait, renew immediately: expires_in
        counts from sent and may already be over. With a session_id, the lease is kept alive by that session, whose ttl and
        grace it has: leave them out. Raises SessionLost if that has ended. on_expiry is "expire" or "hold", see hold. The
        task_id names the thread of work, by which the service finds deadlocks; see hold. Raises Deadlock if this call must give
        way. Raises LockFrozen while an operator has frozen the lock, and AlreadyDone while a release has closed it: with once at
        once, else when wait is over."""
        body = members(lease_id=lease_id, holder=holder or default_holder(not lease_id), session_id=session_id,
                       task_id=task_id, once=once or None, wait_ms=ms("wait", wait), keep_place=keep_place or None, ttl_ms=ms("ttl", ttl),
                       grace_ms=ms("grace", grace), max_hold_ms=ms("max_hold", max_hold), on_expiry=on_expiry, metadata=metadata, **modes(name, mode, capacity, permits))
        return self._grant(name, "/acquire", body, timeout, wait=wait, repeatable=bool(lease_id))

    def renew(self, name: Locks, lease_id: str, *, ttl: Optional[float] = None, metadata: Optional[Json] = None,
              timeout: Optional[float] = None) -> Grant:
        """Renews the lease, or raises LeaseLost. Omitted arguments stay unchanged. The lease of a session ends with the
        session, so its renewal moves nothing and must not have a ttl. Locks that were acquired together are renewed
        together; the code lease_in_set is for one of them alone, and its fields["set"] has all names."""
        names = None if isinstance(name, str) else names_of(name)
        return self._grant(name, "/renew", members(lease_id=lease_id, names=names, ttl_ms=ms("ttl", ttl), metadata=metadata), timeout)

    def release(self, name: Locks, lease_id: str, *, closed: Optional[float] = None, once_per: Optional[str] = None,
                time_zone: Optional[str] = None, timeout: Optional[float] = None) -> None:
        """Releases the lease or the place in the queue; may be repeated. Raises LeaseLost if it ended otherwise. Locks
        that were acquired together are released together. With closed or once_per, the release also closes the lock, because
        its work is done: for so many seconds since the grant; until the end of the minute, hour, day, week or month of the
        grant in the time_zone, a name such as Europe/Berlin; or until the later one of the two. See once."""
        body = members(lease_id=lease_id, names=None if isinstance(name, str) else names_of(name), closed_ms=ms("closed", closed),
                       once_per=once_per, time_zone=time_zone)
        self._call("POST", lock_path(name, "/release"), body, changes=True, timeout=timeout)

    def revoke(self, name: str, *, token: int, reason: str, slot: Optional[int] = None,
               acquired_at: Optional[str] = None, skip_grace: bool = False) -> answers.Lock:
        """Revokes the leases with this token and returns the lock; the code token_mismatch if there are none.
        The lease's grace still blocks other grants, unless skip_grace is true."""
        body = members(fencing_token=token, reason=reason, slot=slot, acquired_at=acquired_at, skip_grace=skip_grace or None)
        return cast(answers.Lock, self._call("POST", path("/v1/locks", name, "/revoke"), body, changes=True, repeatable=False,
                                             has=("state",), name=name))

    def batch(self, items: Sequence[Mapping[str, Any]], *, timeout: Optional[float] = None) -> answers.BatchResults:
        """Sends up to 1000 acquires, which do not wait, renewals and releases as one request, and returns the result of
        each, in their order: some may fail while others succeed, so check each status. An item is a dict with an op
        ("acquire", "renew" or "release"), a name, a lease_id, for an acquire a holder, and other members as in the HTTP
        API, such as ttl_ms. Give acquires a lease_id, to be able to send the batch again after UnknownOutcome."""
        if not isinstance(items, (list, tuple)) or not all(isinstance(item, Mapping) for item in items):
            raise TypeError("Give the items as a list of dicts.")
        body = {"items": [{"holder": default_holder(), **item} if item.get("op") == "acquire" else dict(item) for item in items]}
        repeatable = all(item.get("lease_id") for item in items)
        return cast(answers.BatchResults, self._call("POST", "/v1/batch", body, changes=True, repeatable=repeatable, timeout=timeout,
                                                     has=("results",)))

    def open_session(self, *, session_id: Optional[str] = None, holder: Optional[str] = None, ttl: Optional[float] = None,
                     grace: Optional[float] = None, metadata: Optional[Json] = None, timeout: Optional[float] = None) -> SessionGrant:
        """Opens a session, or returns the one that an earlier call with this session_id and holder has opened. Choose
        the session_id, a random UUID, yourself, to be able to send the call again after UnknownOutcome."""
        body = members(session_id=session_id or str(uuid.uuid4()), holder=holder or default_holder(not session_id), ttl_ms=ms("ttl", ttl),
                       grace_ms=ms("grace", grace), metadata=metadata)
        return self._session_grant("", body, timeout)

    def renew_session(self, session_id: str, *, ttl: Optional[float] = None, timeout: Optional[float] = None) -> SessionGrant:
        """Renews the session and thus all of its leases, or raises SessionLost. answer["revoked_leases"] says how many
        leases of the session were revoked one by one; if that has grown since the last answer, renew each lease to find out which has ended."""
        return self._session_grant("/renew", members(session_id=session_id, ttl_ms=ms("ttl", ttl)), timeout)

    def close_session(self, session_id: str, *, timeout: Optional[float] = None) -> None:
        """Releases all leases of the session, gives up its places and ends it; may be repeated. Raises SessionLost if it
        ended otherwise."""
        self._call("POST", "/v1/sessions/close", members(session_id=session_id), changes=True, timeout=timeout)

    def sessions(self, *, holder: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None) -> answers.SessionPage:
        """Returns a page of open sessions in the order of their public names; the last page has no next_cursor."""
        return cast(answers.SessionPage, self._call("GET", f"/v1/sessions?{query(holder=holder, limit=limit, cursor=cursor)}", has=("sessions",)))

    def session(self, ref: str) -> answers.SessionInfo:
        """Returns the session with this public name, and its leases and places. Raises the code not_found if there is none."""
        return cast(answers.SessionInfo, self._call("GET", path("/v1/sessions", ref), has=("leases", "places"), session=ref))

    def revoke_session(self, ref: str, *, reason: str, skip_grace: bool = False) -> answers.SessionInfo:
        """Ends the session with this public name and its leases, and returns it. Its grace still blocks other grants,
        unless skip_grace is true. Raises SessionLost if it had ended otherwise."""
        body = members(reason=reason, skip_grace=skip_grace or None)
        return cast(answers.SessionInfo, self._call("POST", path("/v1/sessions", ref, "/revoke"), body, changes=True,
                                                    has=("leases", "places"), session=ref))

    def declare_tree(self, root: str) -> answers.Tree:
        """Declares the tree of root and all names that begin with it and a colon, and returns it; may be repeated. There, a
        lock covers all locks below it. Raises the codes tree_busy while one is held or waited for, and tree_overlaps."""
        return cast(answers.Tree, self._call("PUT", path("/v1/trees", root), changes=True, has=("declared_at",), root=root))

    def remove_tree(self, root: str) -> None:
        """Makes the locks of the tree independent; may be repeated. Raises the code tree_busy like declare_tree."""
        self._call("DELETE", path("/v1/trees", root), changes=True)

    def trees(self) -> answers.TreeList:
        """Returns all declared trees in the order of their roots."""
        return cast(answers.TreeList, self._call("GET", "/v1/trees", has=("trees",)))

    def lock(self, name: str) -> answers.Lock:
        """Returns the lock. A lock that was never used is free."""
        return cast(answers.Lock, self._call("GET", path("/v1/locks", name), has=("state",), name=name))

    def queue(self, name: str) -> answers.Queue:
        """Returns the waiters in the order in which they will be served, and what blocks each of them."""
        return cast(answers.Queue, self._call("GET", path("/v1/locks", name, "/queue"), has=("waiters",), name=name))

    def locks(self, *, prefix: Optional[str] = None, contains: Optional[str] = None, state: Optional[str] = None,
              holder: Optional[str] = None, contended: bool = False, sort: Optional[str] = None,
              limit: Optional[int] = None, cursor: Optional[str] = None) -> answers.LockPage:
        """Returns a page of locks in the order of their names; the last page has no next_cursor. contended: only locks with
        waiters. sort is "waiters", "age" or "ending": one page, without free locks."""
        asked = query(prefix=prefix, contains=contains, state=state, holder=holder, sort=sort,
                      contended="true" if contended else None, limit=limit, cursor=cursor)
        return cast(answers.LockPage, self._call("GET", f"/v1/locks?{asked}", has=("locks",)))

    def holds(self, name: str, *, at: Optional[str] = None, until: Optional[str] = None, limit: Optional[int] = None) -> answers.HoldList:
        """Returns who held the lock, the newest grant first: at an instant, such as 2026-01-02T03:12:00Z, or last."""
        asked = query(at=at, until=until, limit=limit)
        return cast(answers.HoldList, self._call("GET", path("/v1/locks", name, f"/holds?{asked}"), has=("holds", "complete"), name=name))

    def events(self, *, lock: Optional[str] = None, prefix: Optional[str] = None, kind: Optional[str] = None, deadlock: bool = False,
               holder: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None,
               order: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None,
               wait: float = 0.0) -> answers.EventPage:
        """Returns a page of events, oldest first unless order is "desc"; pass its next_cursor for the next page, which
        there is none of without one. kind may have several kinds with commas between them; deadlock selects the
        waiters that were removed to break one. wait waits for an event."""
        asked = query(lock=lock, prefix=prefix, kind=kind, deadlock="true" if deadlock else None, holder=holder, since=since, until=until,
                      order=order, limit=limit, cursor=cursor, wait_ms=ms("wait", wait) or None)
        return cast(answers.EventPage, self._call("GET", f"/v1/events?{asked}", wait=wait, has=("events",)))

    def wait_for_events(self, locks: Sequence[str] = (), *, sessions: Sequence[str] = (), kinds: Sequence[str] = (),
                        cursor: Optional[str] = None, wait: float = 0.0) -> answers.EventPage:
        """Waits until one of the locks has an event of these kinds after the cursor, or one of the sessions, by their
        public names, has ended; without kinds, any event. Without a cursor, from now on. Pass next_cursor to go on."""
        for option, listed in (("locks", locks), ("sessions", sessions), ("kinds", kinds)):
            if not isinstance(listed, (list, tuple)) or not all(isinstance(item, str) for item in listed):
                raise wrong_type(option, listed, "a list of texts")
        body = members(locks=list(locks) or None, sessions=list(sessions) or None, kinds=list(kinds) or None, cursor=cursor,
                       wait_ms=ms("wait", wait) or None)
        return cast(answers.EventPage, self._call("POST", "/v1/events/wait", body, wait=wait, has=("events", "next_cursor")))

    def verify_token(self, name: str, token: int, *, slot: Optional[int] = None) -> answers.TokenVerification:
        """Returns the status of a token as of checked_at. Only a check in the transaction that writes is stronger."""
        body = members(name=name, fencing_token=token, slot=slot)
        return cast(answers.TokenVerification, self._call("POST", "/v1/tokens/verify", body, has=("status", "current"), name=name))

    def report_stale_token(self, name: str, token: int, *, where: Optional[str] = None, slot: Optional[int] = None) -> bool:
        """Records in the lock's history that a write with this stale token was rejected, where says by what. False if a
        limit does not allow it. Raises the codes token_mismatch if the token is current, unknown_token if never granted."""
        body = members(name=name, fencing_token=token, slot=slot, where=where)
        return bool(self._call("POST", "/v1/tokens/report", body, changes=True, has=("recorded",))["recorded"])

    def write_fenced(self, key: str, *, lock: str, token: int, value: Any, slot: Optional[int] = None,
                     if_version: Optional[int] = None, operation_id: Optional[str] = None) -> answers.FencedValue:
        """Writes any JSON value under the token. Raises StaleToken or the codes unknown_token, version_mismatch. With an
        operation_id, a write that was done before, under whatever token, is not done again."""
        body = {**members(lock=lock, fencing_token=token, slot=slot, if_version=if_version, operation_id=operation_id), "value": value}
        return cast(answers.FencedValue, self._call("PUT", path("/v1/fenced", key), body, changes=True,
                                                    repeatable=if_version is None or operation_id is not None,
                                                    has=("version",), key=key))

    def read_fenced(self, key: str) -> answers.FencedValue:
        """Returns the value under the key. Raises the code not_found if there is none."""
        return cast(answers.FencedValue, self._call("GET", path("/v1/fenced", key), has=("version",), key=key))

    def _grant(self, name: Locks, verb: str, body: Json, timeout: Optional[float], *, wait: float = 0.0, repeatable: bool = True) -> Grant:
        sent, one, same = self.clock(), isinstance(name, str), {"name": name} if isinstance(name, str) else {}
        if "lease_id" in body:
            same["lease_id"] = body["lease_id"] = body["lease_id"].lower()
        a = self._call("POST", lock_path(name, verb), body, changes=True, repeatable=repeatable, timeout=timeout, wait=wait,
                       names=[] if one else sorted(names_of(name)),
                       has=(*(("fencing_token", "slot") if one else ("locks",)), "lease_id", "ttl_ms", "expires_in_ms"), **same)
        of = a if one else a["locks"][0]
        return Grant(of["name"], a["lease_id"], of["fencing_token"], of["slot"], a["ttl_ms"] / 1000, a["expires_in_ms"] / 1000, sent, a)

    def _session_grant(self, verb: str, body: Json, timeout: Optional[float]) -> SessionGrant:
        sent, body["session_id"] = self.clock(), body["session_id"].lower()
        a = self._call("POST", f"/v1/sessions{verb}", body, changes=True, timeout=timeout, session_id=body["session_id"],
                       has=("session", "holder", "ttl_ms", "expires_in_ms", "revoked_leases"))
        return SessionGrant(a["session_id"], a["session"], a["ttl_ms"] / 1000, a["expires_in_ms"] / 1000, sent, a)

    def _call(self, method: str, where: str, body: Optional[Json] = None, *, changes: bool = False, repeatable: bool = True,
              timeout: Optional[float] = None, wait: float = 0.0, has: Sequence[str] = (), names: Sequence[str] = (), **same: str) -> Json:
        """One request. Its answer has the members has and same, and locks of these names; without has it is 204. timeout
        includes the wait."""
        wait = wait if timeout is None else min(wait, timeout)
        beyond = self.timeout if timeout is None else max(timeout - wait, 0.01)
        response = self._exchange(Request(method, where, _as_json(body), beyond, wait=wait, repeatable=repeatable), changes)
        if response.status == 204 and not has and response.of_paddock:
            return {}
        answer = decode(response, "application/json") if response.status in (200, 201) else {}
        if (not has or not all(key in answer for key in has) or any(answer.get(key) != same[key] for key in same)
                or names and names != names_of(answer["locks"])):
            raise error_of(response, changes)
        return answer

    def _exchange(self, request: Request, changes: bool = False) -> Response:
        try:
            return self._transport.exchange(request)
        except Broken as e:
            error, after = (UnknownOutcome, MAYBE_CHANGED) if changes else (Unavailable, UNCHANGED)
            what = f"The response was lost. {e}. {after}" if str(e) else f"The response was lost. {after}"
            code = "unknown_outcome" if changes else "unavailable"
            raise error(code, what, None, {"cut": True} if isinstance(e, WaitCut) else None) from e.__cause__ or e


def _urls(base_url: Optional[str], base_urls: Optional[Sequence[str]]) -> List[str]:
    """Returns the addresses of the arguments, or else those of PADDOCK_URL."""
    if base_url is not None and base_urls is not None:
        raise ValueError("base_url and base_urls are both set; pass one of them")
    if base_urls is None:
        base_url = base_url if base_url is not None else os.environ.get("PADDOCK_URL", "")
        if not isinstance(base_url, str):
            raise wrong_type("base_url", base_url, "text, or give a list as base_urls")
        if not base_url:
            raise ValueError("there is no base URL; pass one, or set PADDOCK_URL")
        base_urls = [url.strip() for url in base_url.split(",")]
    if not isinstance(base_urls, (list, tuple)):
        raise wrong_type("base_urls", base_urls, "a list with the URL of each replica")
    for number, url in enumerate(base_urls, 1):
        if not isinstance(url, str):
            raise wrong_type(f"base URL {number} of {len(base_urls)}", url, "text")
    return list(base_urls)


def _as_json(body: Optional[Json]) -> Optional[bytes]:
    try:
        return None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as e:
        raise InvalidRequest("invalid_request", f"The request cannot be written as JSON: {e}.") from e


def decode(response: Response, content_type: str) -> Json:
    """Returns the JSON object of a response of Paddock with this content type, or an empty one."""
    try:
        value = json.loads(response.content) if response.of_paddock and response.head.headers.get_content_type() == content_type else {}
    except ValueError:
        value = {}
    return cast(Json, value) if isinstance(value, dict) else {}


def error_of(response: Response, changes: bool) -> PaddockError:
    """Returns the error for a response: that of its problem document, if it is from Paddock. Text of other servers is
    not repeated, since it may echo the request."""
    status, problem = response.status, decode(response, "application/problem+json")
    retry_after = response.head.headers.get("Retry-After", "")
    problem.setdefault("retry_after_ms", int(retry_after) * 1000 if re.fullmatch("[0-9]{1,6}", retry_after) else 0)
    code = problem.get("code")
    if isinstance(code, str) and (status < 500 or code in CLASSES):
        detail = str(problem.get("detail") or problem.get("title"))
        return CLASSES.get(code, PaddockError)(code, in_arguments(code, detail), status, problem)
    what = (f"The response (HTTP {status}, content type {response.head.headers.get_content_type()!r}) is not from Paddock: "
            "a proxy sent it, or the base URL is wrong. ")
    if status // 100 == 3:
        what += "Redirects are not followed: use the final URL as base URL. "
    fields = {"retry_after_ms": problem["retry_after_ms"]}
    if changes and status not in _REJECTED_BY_PROXY:
        return UnknownOutcome("unknown_outcome", what + MAYBE_CHANGED, status, fields)
    return Unavailable("unavailable", what + UNCHANGED, status, fields)


def default_holder(of_thread: bool = True) -> str:
    """Returns the host and the process, and the asyncio task or the thread, unless that is the main thread: deadlocks are
    between threads. Not of_thread: so that other threads may repeat the call."""
    holder, asyncio = f"{socket.gethostname()}:{os.getpid()}", sys.modules.get("asyncio")
    thread = threading.current_thread()
    name = caller.get() or (thread.name if thread is not threading.main_thread() else "")
    with contextlib.suppress(AttributeError, RuntimeError):  # asyncio is not used, or runs no task in this thread
        name = asyncio.current_task().get_name()  # type: ignore[union-attr]
    if name and of_thread:
        holder += ":" + "".join(c if c.isprintable() else "?" for c in name)
    return holder[:MAX_HOLDER]
