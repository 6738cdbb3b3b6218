"""Paddock: distributed locks with fencing tokens, over HTTP.

    from paddock import LockHeld, Paddock

    paddock = Paddock("http://127.0.0.1:8080")
    try:
        with paddock.hold("jobs:nightly", ttl=30) as lease:
            for row in rows:
                lease.check()            # raises LeaseLost in time
                write(row, lease.token)  # the token is checked where the write happens
    except LockHeld as held:
        print(f"{held.holder} does it")

Standard library only, Python 3.9 or newer: install the package or copy its folder. Durations are in seconds. A Paddock
is safe for use by multiple threads. Each of its methods sends one request; hold is the guard built on them.

The guard chooses the lease_id and repeats an acquire whose response is lost, so no unknown lease remains. A long wait
takes several calls, which keep one place. One thread renews the lease every third of its TTL, or slightly sooner;
another checks the clock. The deadline is the remaining time when the last successful request was sent, minus a margin.

    held      the last renewal succeeded
    at_risk   a renewal failed and is retried; the work may continue until the deadline
    lost      the service said lease_lost, or the deadline has passed: stop the work. This state is final
    released  the lease was released

Python cannot stop a thread, so the work must call check(), watch the event lost, run as a child process (run) or be
interrupted in the main thread (interrupt_main). No client can close the gap between a check and a write: check the
token where the write happens. After a fork, the child does not renew; check() passes until the deadline at the fork.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import json
import logging
import math
import os
import random
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import uuid
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type

__version__ = "0.2.0"
HELD, AT_RISK, LOST, RELEASED = "held", "at_risk", "lost", "released"
MAX_DEFAULT_MARGIN = 5.0
MAX_CALL_WAIT = 25.0  # the service allows 50, proxies often 60
RELEASE_TIMEOUT = 2.0  # of one attempt
TICK = 1.0  # the longest wait of a thread: a wait does not count the time of a suspension
POLL = 0.05  # the interval at which a child process is polled
MAX_RESPONSE = 16 << 20  # bytes
MAX_IDLE, IDLE_TIMEOUT = 32, 50.0  # of kept connections
_log = logging.getLogger("paddock")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")
_UNCHANGED = "Nothing was changed. Try again."
_MAYBE_CHANGED = "The call may or may not have taken effect. Send the same call again to find out; do not treat the lease as lost."
# The statuses with which a proxy rejects a request before it forwards it.
_REJECTED_BY_PROXY = frozenset({401, 403, 404, 405, 413, 415, 429, 431})

Json = Dict[str, Any]


class PaddockError(Exception):
    """An error of the service or of the network. Branch on its class or its code, which is stable. detail says what
    happened and what to do next; status is the HTTP status, or None without a response; fields has the members of the
    problem document. __cause__ is the network error."""

    def __init__(self, code: str, detail: str, status: Optional[int] = None, fields: Optional[Json] = None) -> None:
        super().__init__(code, detail, status, fields)
        self.code: str = code
        self.detail: str = detail
        self.status: Optional[int] = status
        self.fields: Json = fields or {}

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
        return self.status == 429 or (self.status or 0) >= 500 or isinstance(self, (Unavailable, UnknownOutcome))


class InvalidRequest(PaddockError, ValueError):
    """An argument is invalid; see detail."""


class LockHeld(PaddockError):
    """Another holder has the lock; see holder and retry_after."""


class LeaseLost(PaddockError):
    """The lease has ended or is about to end: stop the work. fields["ended"] says how it ended, if known."""


class StaleToken(PaddockError):
    """A greater token has been granted or seen: the lease is lost; stop the work."""


class NotAllowed(PaddockError):
    """The API key is missing, unknown or expired (status 401), or does not allow this call (403); see code. Use
    another key. It does not mean that a lease is lost."""


class Unavailable(PaddockError):
    """A temporary failure; nothing was changed. Retry. It does not mean that a lease is lost."""


class UnknownOutcome(PaddockError):
    """The call may or may not have taken effect; send it again to find out. It does not mean that a lease is lost."""


_CLASSES: Mapping[str, Type[PaddockError]] = {
    "invalid_request": InvalidRequest, "lock_held": LockHeld, "lease_lost": LeaseLost, "stale_token": StaleToken,
    "key_missing": NotAllowed, "key_invalid": NotAllowed, "key_expired": NotAllowed, "role_missing": NotAllowed, "name_not_allowed": NotAllowed,
    "unavailable": Unavailable, "unknown_outcome": UnknownOutcome, "internal": PaddockError,
}


class SuspendClock:
    """A clock that continues while the machine is suspended, for systems that have no such clock. It follows the
    monotonic or the wall clock, whichever advanced more. A wall clock set forward may lose a lease."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clocks, self._seen, self._now = (monotonic, wall), (monotonic(), wall()), 0.0
        self._lock = threading.RLock()  # a signal handler may call it as well

    def __call__(self) -> float:
        with self._lock:
            before, self._seen = self._seen, (self._clocks[0](), self._clocks[1]())
            self._now += max(self._seen[0] - before[0], self._seen[1] - before[1])
            return self._now


class _Transport:
    """HTTP over kept connections. It follows no redirects, since a lease_id must not reach another host, and ignores
    the proxy settings of the environment."""

    def __init__(self, base_url: str, headers: Mapping[str, str], tls: Optional[ssl.SSLContext]) -> None:
        url = urllib.parse.urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc or url.query or url.fragment:
            raise ValueError("the base URL must be http://HOST or https://HOST, optionally with a port and a path, without query, "
                             "fragment or user; pass an API key as key and other credentials as headers")
        connection: Any = http.client.HTTPConnection
        if url.scheme == "https":
            connection = functools.partial(http.client.HTTPSConnection, context=tls or ssl.create_default_context())
        self._connection = functools.partial(connection, url.hostname, url.port or (443 if url.scheme == "https" else 80))
        self._prefix = urllib.parse.quote(url.path.rstrip("/"), safe="/%")
        self._headers = {"User-Agent": f"paddock-python/{__version__}", **headers}
        self._idle: List[Tuple[int, float, http.client.HTTPConnection]] = []

    def exchange(self, method: str, path: str, body: Optional[bytes], timeout: float) -> Tuple[http.client.HTTPResponse, bytes]:
        """Sends one request. Raises Unavailable if nothing was sent, otherwise OSError or HTTPException."""
        connection = self._ready(timeout)
        try:
            connection.sock.settimeout(timeout)
            headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
            connection.request(method, self._prefix + path, body, headers)
            response = connection.getresponse()
            content = response.read() if (response.length or MAX_RESPONSE) < MAX_RESPONSE else response.read(MAX_RESPONSE)
        except BaseException:
            connection.close()
            raise
        if response.isclosed() and connection.sock is not None and len(self._idle) < MAX_IDLE:
            self._idle.append((os.getpid(), time.monotonic(), connection))
        else:
            connection.close()
        return response, content

    def _ready(self, timeout: float) -> Any:
        """Returns a usable kept connection, or a new one."""
        with contextlib.suppress(IndexError):
            while True:
                owner, since, connection = self._idle.pop()
                if owner == os.getpid() and time.monotonic() - since < IDLE_TIMEOUT and _is_idle(connection.sock):
                    return connection
                connection.close()
        connection = self._connection(timeout=timeout)
        try:
            connection.connect()
        except OSError as e:
            raise Unavailable("unavailable", f"The request was not sent: {e}. {_UNCHANGED}") from e
        return connection

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[2].close()


def _authorization(key: Optional[str], headers: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the Authorization header for the key, if there is a key. Errors do not repeat the key."""
    if key is None:
        return {}
    if not re.fullmatch("[!-~]+", key):
        raise ValueError("the key is empty or has an invalid character; pass the API key exactly as you received it")
    if any(name.lower() == "authorization" for name in headers):
        raise ValueError("key and the header Authorization are both set; pass only one of them")
    return {"Authorization": f"Bearer {key}"}


def _is_idle(sock: socket.socket) -> bool:
    """Reports whether a kept connection is still open and has no unread data."""
    try:
        sock.setblocking(False)
        socket.socket.recv(sock, 1, socket.MSG_PEEK)  # below TLS, which does not peek
    except OSError as e:
        return isinstance(e, BlockingIOError)
    return False


def _decode(response: http.client.HTTPResponse, content: bytes, content_type: str) -> Json:
    """Returns the JSON object of a response with this content type, or an empty one."""
    try:
        value = json.loads(content) if response.headers.get_content_type() == content_type else {}
    except ValueError:
        value = {}
    return value if isinstance(value, dict) else {}


def _error_of(response: http.client.HTTPResponse, content: bytes, changes: bool) -> PaddockError:
    """Returns the error for a response: that of its problem document, if it is from Paddock. Text of other servers is
    not repeated, since it may echo the request."""
    status, problem = response.status, _decode(response, content, "application/problem+json")
    seconds = response.headers.get("Retry-After", "")
    problem.setdefault("retry_after_ms", int(seconds) * 1000 if re.fullmatch("[0-9]{1,6}", seconds) else 0)
    code = problem.get("code")
    if isinstance(code, str) and (status < 500 or code in _CLASSES):
        return _CLASSES.get(code, PaddockError)(code, str(problem.get("detail") or problem.get("title")), status, problem)
    what = (f"The response (HTTP {status}, content type {response.headers.get_content_type()!r}) is not from Paddock: "
            "a proxy sent it, or the base URL is wrong. ")
    if status // 100 == 3:
        what += "Redirects are not followed: use the final URL as base URL. "
    fields = {"retry_after_ms": problem["retry_after_ms"]}
    if changes and status not in _REJECTED_BY_PROXY:
        return UnknownOutcome("unknown_outcome", what + _MAYBE_CHANGED, status, fields)
    return Unavailable("unavailable", what + _UNCHANGED, status, fields)


def _ms(seconds: Optional[float]) -> Optional[int]:
    """Returns whole milliseconds; at least 1 for a positive duration."""
    if seconds is None:
        return None
    if not math.isfinite(seconds):
        raise InvalidRequest("invalid_request", f"A duration is {seconds}; use a finite number of seconds.")
    return max(round(seconds * 1000), 1) if seconds > 0 else round(seconds * 1000)


def _omit_none(**members: Any) -> Json:
    return {key: value for key, value in members.items() if value is not None}


def _path(prefix: str, name: str, verb: str = "") -> str:
    if not _NAME.fullmatch(name):
        raise InvalidRequest("invalid_request", f"{name!r} is not a valid name; use 1 to 200 of A-Z a-z 0-9 . _ : @ -")
    return f"{prefix}/{urllib.parse.quote(name, safe='')}{verb}"


@dataclass(frozen=True)
class Grant:
    """A lease as returned by a call; answer has all members of the response."""

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


class Paddock:
    """A client of a Paddock service. Every method except hold sends one request, once, without retries or renewals.
    timeout limits each step of a call: connecting, sending, and waiting for the response beyond the requested wait.
    key is the API key, which starts with pk_, if the service requires one; it appears in no error. headers are sent
    with each call. tls is for your own certificates. clock is for tests; it must continue while the machine is
    suspended. Raises ValueError for an invalid base_url or key. Sends no request."""

    def __init__(self, base_url: str, *, key: Optional[str] = None, timeout: float = 10.0, headers: Optional[Mapping[str, str]] = None,
                 tls: Optional[ssl.SSLContext] = None, clock: Optional[Callable[[], float]] = None) -> None:
        boot = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else None
        self.base_url: str = base_url
        self.timeout: float = timeout
        self.clock: Callable[[], float] = clock or boot or SuspendClock()
        self._transport = _Transport(base_url, {**(headers or {}), **_authorization(key, headers or {})}, tls)

    def close(self) -> None:
        """Closes the kept connections. The Paddock can still be used."""
        self._transport.close()

    def acquire(self, name: str, *, lease_id: Optional[str] = None, wait: float = 0.0, keep_place: bool = False,
                timeout: Optional[float] = None, holder: Optional[str] = None, ttl: Optional[float] = None,
                mode: str = "exclusive", capacity: Optional[int] = None, grace: Optional[float] = None,
                max_hold: Optional[float] = None, metadata: Optional[Json] = None) -> Grant:
        """Acquires the lock, or raises LockHeld if it is not granted within wait, which is at most 50. Choose the
        lease_id, a random UUID, yourself, to be able to send the call again after UnknownOutcome. After a wait,
        renew immediately: expires_in counts from sent and may already be over."""
        body = _omit_none(lease_id=lease_id or str(uuid.uuid4()), holder=holder or f"{socket.gethostname()}:{os.getpid()}",
                      wait_ms=_ms(wait), keep_place=keep_place or None, ttl_ms=_ms(ttl), mode=mode, capacity=capacity,
                      grace_ms=_ms(grace), max_hold_ms=_ms(max_hold), metadata=metadata)
        return self._grant(name, "/acquire", body, self.timeout + wait if timeout is None else timeout)

    def renew(self, name: str, lease_id: str, *, ttl: Optional[float] = None, metadata: Optional[Json] = None,
              timeout: Optional[float] = None) -> Grant:
        """Renews the lease, or raises LeaseLost. Omitted arguments stay unchanged."""
        return self._grant(name, "/renew", _omit_none(lease_id=lease_id, ttl_ms=_ms(ttl), metadata=metadata), timeout)

    def release(self, name: str, lease_id: str, *, timeout: Optional[float] = None) -> None:
        """Releases the lease or the place in the queue; may be repeated. Raises LeaseLost if it ended otherwise."""
        self._call("POST", _path("/v1/locks", name, "/release"), _omit_none(lease_id=lease_id), changes=True, timeout=timeout)

    def revoke(self, name: str, *, token: int, reason: str, slot: Optional[int] = None,
               acquired_at: Optional[str] = None, skip_grace: bool = False, at_once: None = None) -> Json:
        """Revokes the leases with this token and returns the lock; the code token_mismatch if there are none.
        The lease's grace still blocks other grants, unless skip_grace is true."""
        if at_once is not None:
            raise TypeError("revoke() has no argument at_once; it was renamed to skip_grace")
        body = _omit_none(fencing_token=token, reason=reason, slot=slot, acquired_at=acquired_at, skip_grace=skip_grace or None)
        return self._call("POST", _path("/v1/locks", name, "/revoke"), body, changes=True, has=("state",), name=name)

    def lock(self, name: str) -> Json:
        """Returns the lock. A lock that was never used is free."""
        return self._call("GET", _path("/v1/locks", name), has=("state",), name=name)

    def queue(self, name: str) -> Json:
        """Returns the waiters in the order in which they will be served, and what blocks each of them."""
        return self._call("GET", _path("/v1/locks", name, "/queue"), has=("waiters",), name=name)

    def locks(self, *, prefix: Optional[str] = None, contains: Optional[str] = None, state: Optional[str] = None,
              holder: Optional[str] = None, contended: bool = False, sort: Optional[str] = None,
              limit: Optional[int] = None, cursor: Optional[str] = None) -> Json:
        """Returns a page of locks in the order of their names; the last page has no next_cursor. contended: only locks with
        waiters. sort is "waiters", "age" or "ending": one page, without free locks."""
        query = urllib.parse.urlencode(_omit_none(prefix=prefix, contains=contains, state=state, holder=holder, sort=sort,
                                                  contended="true" if contended else None, limit=limit, cursor=cursor))
        return self._call("GET", f"/v1/locks?{query}", has=("locks",))

    def holds(self, name: str, *, at: Optional[str] = None, until: Optional[str] = None,
              limit: Optional[int] = None) -> Json:
        """Returns who held the lock, the newest grant first: at an instant, such as 2026-01-02T03:12:00Z, or last."""
        query = urllib.parse.urlencode(_omit_none(at=at, until=until, limit=limit))
        return self._call("GET", _path("/v1/locks", name, f"/holds?{query}"), has=("holds", "complete"), name=name)

    def events(self, *, lock: Optional[str] = None, prefix: Optional[str] = None, kind: Optional[str] = None,
               holder: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None,
               order: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None,
               wait: float = 0.0) -> Json:
        """Returns a page of events, oldest first unless order is "desc"; pass its next_cursor for the next page, which
        there is none of without one. kind may have several kinds with commas between them. wait waits for an event."""
        query = urllib.parse.urlencode(_omit_none(lock=lock, prefix=prefix, kind=kind, holder=holder, since=since, until=until,
                                                  order=order, limit=limit, cursor=cursor, wait_ms=_ms(wait) or None))
        return self._call("GET", f"/v1/events?{query}", timeout=self.timeout + wait, has=("events",))

    def verify_token(self, name: str, token: int, *, slot: Optional[int] = None) -> Json:
        """Returns the status of a token as of checked_at. Only a check in the transaction that writes is stronger."""
        body = _omit_none(name=name, fencing_token=token, slot=slot)
        return self._call("POST", "/v1/tokens/verify", body, has=("status", "current"), name=name)

    def report_stale_token(self, name: str, token: int, *, where: Optional[str] = None, slot: Optional[int] = None) -> bool:
        """Records in the lock's history that a write with this stale token was rejected, where says by what. False if a
        limit does not allow it. Raises the codes token_mismatch if the token is current, unknown_token if never granted."""
        body = _omit_none(name=name, fencing_token=token, slot=slot, where=where)
        return bool(self._call("POST", "/v1/tokens/report", body, changes=True, has=("recorded",))["recorded"])

    def write_fenced(self, key: str, *, lock: str, token: int, value: Any, slot: Optional[int] = None,
                     if_version: Optional[int] = None) -> Json:
        """Writes any JSON value under the token. Raises StaleToken or the codes unknown_token, version_mismatch."""
        body = {**_omit_none(lock=lock, fencing_token=token, slot=slot, if_version=if_version), "value": value}
        return self._call("PUT", _path("/v1/fenced", key), body, changes=True, has=("version",), key=key)

    def read_fenced(self, key: str) -> Json:
        """Returns the value under the key. Raises the code not_found if there is none."""
        return self._call("GET", _path("/v1/fenced", key), has=("version",), key=key)

    def hold(self, name: str, *, ttl: float = 30.0, wait: Optional[float] = 0.0, retry: float = 10.0,
             margin: Optional[float] = None, on_state: Optional[Callable[[str, Optional[Exception]], object]] = None,
             on_lost: Optional[Callable[[LeaseLost], object]] = None, interrupt_main: bool = False,
             on_acquired: Optional[Callable[[float, Optional[BaseException]], object]] = None,
             on_renewed: Optional[Callable[[float, Optional[Exception]], object]] = None,
             holder: Optional[str] = None, mode: str = "exclusive", capacity: Optional[int] = None,
             grace: Optional[float] = None, max_hold: Optional[float] = None, metadata: Optional[Json] = None) -> Lease:
        """Acquires the lock and renews its lease until it is released. Use it in a with statement.

        wait      how long to wait in the queue: 0 does not wait, None waits without limit; then LockHeld
        retry     how long to retry while the service cannot be reached, or wait if that is longer; then Unavailable
        margin    how long before its end the lease counts as lost: the time your work needs to stop, at most a third
                  of ttl; the default is a tenth of ttl, at most 5 seconds
        on_state  is called with held, at_risk or lost, and the error that caused it. Renewals wait until it returns
        on_lost   is called with the loss, from another thread
        on_acquired  is called when the acquire has ended, with the seconds that it took and its error; for metrics
        on_renewed   is called after each attempt to renew, with the share of the ttl that was left and its error; for
                  metrics: with a share near a tenth, the next slow response costs the lease
        interrupt_main  on loss, raise KeyboardInterrupt in the main thread while it is in the with block, which then
                  raises LeaseLost. Only from the main thread, on POSIX; uses SIGURG

        If the wait ends in any way, KeyboardInterrupt included, the place and a lease granted meanwhile are released.
        """
        margin = min(ttl / 10, MAX_DEFAULT_MARGIN) if margin is None else margin
        if not 0 < ttl < math.inf or not 0 < margin <= ttl / 3 or not (wait or 0) >= 0:
            raise InvalidRequest("invalid_request", "Use a ttl above 0, a margin of at most a third of it, and a wait of 0 or more.")
        if interrupt_main and (threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGURG")):
            raise InvalidRequest("invalid_request", "interrupt_main works only in the main thread, on POSIX; use the event lost instead.")
        want = {"holder": holder, "ttl": ttl, "mode": mode, "capacity": capacity, "grace": grace, "max_hold": max_hold,
                "metadata": metadata}
        began = self.clock()
        try:
            grant = _acquire_lease(self, name, want, margin, math.inf if wait is None else wait, retry)
        except BaseException as e:
            _call(name, on_acquired, self.clock() - began, e)
            raise
        try:
            _call(name, on_acquired, self.clock() - began, None)
            return Lease(self, grant, margin, on_state, on_lost, interrupt_main, on_renewed)
        except BaseException:
            _abandon(self, name, grant.lease_id)
            raise

    def _grant(self, name: str, verb: str, body: Json, timeout: Optional[float]) -> Grant:
        sent, body["lease_id"] = self.clock(), body["lease_id"].lower()
        a = self._call("POST", _path("/v1/locks", name, verb), body, changes=True, timeout=timeout, name=name,
                       lease_id=body["lease_id"], has=("fencing_token", "slot", "ttl_ms", "expires_in_ms"))
        return Grant(name, a["lease_id"], a["fencing_token"], a["slot"], a["ttl_ms"] / 1000, a["expires_in_ms"] / 1000, sent, a)

    def _call(self, method: str, path: str, body: Optional[Json] = None, *, changes: bool = False,
              timeout: Optional[float] = None, has: Sequence[str] = (), **same: str) -> Json:
        """One request. Its answer has the members has and same; without has it is 204."""
        try:
            sent = None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as e:
            raise InvalidRequest("invalid_request", f"The request cannot be written as JSON: {e}.") from e
        try:
            response, content = self._transport.exchange(method, path, sent, self.timeout if timeout is None else timeout)
        except (OSError, http.client.HTTPException) as e:
            if changes:
                raise UnknownOutcome("unknown_outcome", f"The response was lost. {_MAYBE_CHANGED}") from e
            raise Unavailable("unavailable", f"The response was lost. {_UNCHANGED}") from e
        if response.status == 204 and not has:
            return {}
        answer = _decode(response, content, "application/json") if response.status in (200, 201) else {}
        if not has or not all(key in answer for key in has) or any(answer.get(key) != same[key] for key in same):
            raise _error_of(response, content, changes)
        return answer


def _backoff(first: float, longest: float) -> Iterator[float]:
    while True:
        yield random.uniform(first / 2, first)
        first = min(first * 2, longest)


def _acquire_lease(paddock: Paddock, name: str, want: Json, margin: float, wait: float, retry: float) -> Grant:
    """Acquires and returns a lease that has more than the margin left."""
    clock, lease_id, pauses = paddock.clock, str(uuid.uuid4()), _backoff(0.1, 2.0)
    wait_until, retry_until = clock() + wait, clock() + max(wait, retry)
    try:
        while True:
            left = max(wait_until - clock(), 0.0)
            try:
                ask: Json = {**want, "lease_id": lease_id, "wait": min(left, MAX_CALL_WAIT), "keep_place": left > MAX_CALL_WAIT}
                grant = paddock.acquire(name, **ask)
                if clock() > grant.sent + margin:  # after a wait, or after a slow response
                    grant = paddock.renew(name, lease_id)
                if clock() < grant.until - margin:
                    return grant
                error: PaddockError = Unavailable("unavailable", "The service responds too slowly for this ttl; use a longer one.")
            except LeaseLost as e:  # before the caller got it: no work was done under that lease
                error, lease_id = e, str(uuid.uuid4())
            except PaddockError as e:
                if isinstance(e, LockHeld) and clock() < wait_until:
                    continue
                if not e.transient:
                    raise
                error = e
            if clock() >= retry_until:
                raise error
            time.sleep(min(max(next(pauses), error.retry_after), max(retry_until - clock(), 0.0)))
    except BaseException as e:
        if not isinstance(e, PaddockError) or e.transient:
            _abandon(paddock, name, lease_id)
        raise


def _abandon(paddock: Paddock, name: str, lease_id: str) -> None:
    """Releases an unused lease or place. If that fails, a place ends within seconds and a lease with its TTL."""
    try:
        paddock.release(name, lease_id, timeout=RELEASE_TIMEOUT)
    except PaddockError as e:
        _log.debug("%s: cannot release: %s", name, e)


class Lease:
    """A lease that is renewed in the background, from Paddock.hold. A with statement releases it at its end, and
    raises LeaseLost if it was lost: the work may have overlapped with another holder's. lost is an event that is set
    when the lease is lost or released: no work may continue under it. deadline is an instant on the Paddock's clock.
    error says why the lease is at risk or lost. A lease without any reference to it is no longer renewed."""

    def __init__(self, paddock: Paddock, grant: Grant, margin: float, on_state: Optional[Callable[..., object]],
                 on_lost: Optional[Callable[..., object]], interrupt_main: bool, on_renewed: Optional[Callable[..., object]] = None) -> None:
        self.name: str = grant.name
        self.token: int = grant.token
        self.slot: int = grant.slot
        self.lost: threading.Event = threading.Event()
        self._paddock, self._margin, self._on_state, self._on_lost = paddock, margin, on_state, on_lost
        self._on_renewed = on_renewed
        self._losses: List[LeaseLost] = []  # the first counts; no mutex, since signals and forks come at any time
        self._released = LeaseLost("lease_lost", "The lease was released; no work may continue under it.")
        self._failure: Optional[Exception] = None
        self._pid, self._release_done, self._notify_lock = os.getpid(), False, threading.RLock()
        self._interrupt_main, self._armed = interrupt_main, False
        self._update(grant)
        weakref.finalize(self, _warn_dropped, self.name, self.lost).atexit = False
        for step, last in (Lease._check_deadline, Lease._notify_loss), (Lease._renew, None):
            threading.Thread(target=_run_steps, args=(weakref.ref(self), self.lost, step, last), name="paddock lease", daemon=True).start()

    @property
    def state(self) -> str:
        """held, at_risk, lost or released."""
        if self._losses:
            return RELEASED if self._losses[0] is self._released else LOST
        return AT_RISK if self._failure else HELD

    @property
    def error(self) -> Optional[Exception]:
        return self._losses[0] if self._losses else self._failure

    def remaining(self) -> float:
        """Returns the seconds until the deadline; 0 if the lease is lost or released. It reads the clock."""
        return 0.0 if self._losses else max(self.deadline - self._paddock.clock(), 0.0)

    def check(self) -> None:
        """Raises LeaseLost if the lease is lost or released, or the deadline has passed."""
        if self._check_deadline() <= 0:
            raise LeaseLost(*self._losses[0].args)

    def release(self, timeout: float = 5.0) -> None:
        """Releases the lease; may be repeated. Raises LeaseLost if it was lost: the work may have overlapped.
        If the service does not respond, retries for timeout seconds, then raises Unavailable or UnknownOutcome: the
        lease is no longer renewed and ends with its TTL."""
        if os.getpid() != self._pid:
            return
        clock, pauses = self._paddock.clock, _backoff(0.05, 1.0)
        until = clock() + timeout
        self._check_deadline()
        self._lose(self._released)
        while not self._release_done:
            try:
                self._paddock.release(self.name, self._grant.lease_id, timeout=min(max(until - clock(), 0.1), RELEASE_TIMEOUT))
            except LeaseLost as e:
                self._release_done = True
                if self.state == LOST or e.fields.get("ended") != "expired" or clock() < self.deadline:
                    raise  # otherwise it expired after the end of the work
            except PaddockError as e:
                if self.state == RELEASED:
                    if not e.transient or clock() >= until:
                        raise
                    time.sleep(min(next(pauses), max(until - clock(), 0.0)))
                    continue
            self._release_done = True
            if self.state == LOST:
                raise LeaseLost(*self._losses[0].args)

    def __enter__(self) -> Lease:
        if self._interrupt_main:
            self._handler, self._armed = signal.signal(signal.SIGURG, self._interrupt), True
            if self.lost.is_set():  # too early for an interrupt
                self.__exit__(None, None, None)
        return self

    def __exit__(self, _: Optional[Type[BaseException]], error: Optional[BaseException], __: Optional[TracebackType]) -> None:
        armed, self._armed = self._armed, False
        if self._interrupt_main:
            signal.signal(signal.SIGURG, self._handler or signal.SIG_DFL)
        try:
            self.release()
        except LeaseLost as lost:
            if error is None or (self._interrupt_main and not armed and isinstance(error, KeyboardInterrupt)):
                raise
            if not isinstance(error, LeaseLost):
                _log.warning("%s: the work failed with %r and may have overlapped: %s", self.name, error, lost)
        except PaddockError as e:
            _log.warning("%s: the lease is not released and ends with its TTL: %s", self.name, e)

    def run(self, argv: Sequence[str], *, kill_after: Optional[float] = None, **popen: Any) -> int:
        """Runs a child process under the lease and returns its exit code, or -N if signal N killed it.
        The child leads its own process group. Before another holder can get the lock, the group gets SIGTERM and,
        after kill_after seconds, SIGKILL; if the lease has already ended, both immediately. Then LeaseLost is raised.
        The default kill_after is half the margin, the maximum a third of the ttl. When the child ends or an exception
        is raised, the rest of the group is stopped in the same way; processes that left the group are not. The child's
        environment has PADDOCK_LOCK, _FENCING_TOKEN, _HOLDER, _URL and, if there is one, _SLOT. popen goes to
        subprocess.Popen. If this process is killed, the child continues without a guard. POSIX only."""
        kill_after = self._margin / 2 if kill_after is None else kill_after
        if not 0 <= kill_after <= self._grant.ttl / 3:
            raise InvalidRequest("invalid_request", "Use a kill_after of at most a third of the ttl.")
        self.check()
        own = {"PADDOCK_LOCK": self.name, "PADDOCK_FENCING_TOKEN": str(self.token), "PADDOCK_URL": self._paddock.base_url,
               "PADDOCK_HOLDER": self._grant.answer["holder"], "PADDOCK_SLOT": str(self.slot or ""),
               "PADDOCK_LEASE_ID": "", "PADDOCK_EXPIRES_AT": ""}  # empty: removed; may be of another lease
        env = {key: value for key, value in {**(popen.pop("env", None) or os.environ), **own}.items() if own.get(key) != ""}
        clock, early = self._paddock.clock, max(kill_after - self._margin / 2, 0.0)
        children: List[subprocess.Popen[Any]] = []
        try:
            # A KeyboardInterrupt does not reach the other thread, and the end of the with waits for it: no child is missed.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(lambda: children.append(subprocess.Popen(argv, env=env, start_new_session=True, **popen))).result()
            child, = children
            while child.poll() is None and self.remaining() > early:
                self.lost.wait(POLL)
            overdue = child.returncode is None
        finally:
            for child in children:
                ended = self.state == LOST and clock() < self.deadline  # and another holder may have the lock
                until = min(clock() + (0 if ended else kill_after), self.deadline + self._margin / 2)
                _terminate(child, clock, until)
        if overdue:
            self._lose(_deadline_error())
            raise LeaseLost(*self._losses[0].args)
        return child.returncode

    def _check_deadline(self) -> float:
        """Marks the lease lost if its deadline has passed; returns how long to wait until the next check."""
        left = self.remaining()
        if left <= 0:
            self._lose(_deadline_error())
        return min(left, TICK)

    def _update(self, grant: Grant) -> None:
        self._grant, self._failure, self._backoff = grant, None, _backoff(grant.ttl / 60, grant.ttl / 12)
        self.deadline: float = grant.until - self._margin
        self._due = grant.sent + min(grant.ttl, grant.expires_in) / 3 * random.uniform(0.85, 1)

    def _renew(self) -> float:
        """Renews the lease if a renewal is due; returns how long to wait until the next check."""
        early = self._due - self._paddock.clock()
        if early > 0:
            return min(early, TICK)
        was_failing = self._failure is not None
        try:
            patience = min(self._paddock.timeout, self._grant.ttl / 6, max(self.remaining(), 0.01))
            grant = self._paddock.renew(self.name, self._grant.lease_id, timeout=patience)
        except LeaseLost as e:
            self._observe(e)
            self._lose(e)
        except Exception as e:  # any error: retry until the deadline
            self._observe(e)
            self._failure = e
            pause = max(next(self._backoff), getattr(e, "retry_after", 0.0))
            self._due = self._paddock.clock() + max(min(pause, self.remaining() / 3), 0.01)
            if not was_failing:
                self._notify(AT_RISK, self._on_state, AT_RISK, e)
        else:
            self._observe(None)
            if self._check_deadline() > 0:  # a response after the deadline does not revive the lease
                self._update(grant)
                if was_failing:
                    self._notify(HELD, self._on_state, HELD, None)
        return 0.0

    def _observe(self, error: Optional[Exception]) -> None:
        left = self.deadline + self._margin - self._paddock.clock()
        _call(self.name, self._on_renewed, left / self._grant.ttl, error)

    def _lose(self, why: LeaseLost) -> None:
        if not self._losses:
            self._losses.append(why)
        if os.getpid() == self._pid:  # after a fork, the lock of an event may stay locked
            self.lost.set()

    def _notify(self, state: str, listener: Optional[Callable[..., object]], *args: object) -> None:
        """Calls the listener unless the state has changed meanwhile; in order, although two threads call it."""
        try:
            with self._notify_lock:
                if listener and self.state == state:
                    listener(*args)
        except Exception:
            _log.exception("%s: a callback failed", self.name)

    def _notify_loss(self) -> None:
        self._notify(LOST, self._on_lost, self.error)
        self._notify(LOST, self._on_state, LOST, self.error)
        while self._armed and self.state == LOST:  # until the main thread was interrupted or has left the block
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGURG)
            time.sleep(POLL)

    def _interrupt(self, number: int, frame: Optional[FrameType]) -> None:
        outside = frame is None or frame.f_code in (Lease.__enter__.__code__, Lease.__exit__.__code__)
        if self._armed and self.state == LOST and not outside:
            self._armed = False
            raise KeyboardInterrupt
        if callable(self._handler):
            self._handler(number, frame)


def _call(name: str, listener: Optional[Callable[..., object]], *args: object) -> None:
    try:
        if listener:
            listener(*args)
    except Exception:
        _log.exception("%s: a callback failed", name)


def _deadline_error() -> LeaseLost:
    return LeaseLost("lease_lost", "The lease was not renewed in time. Stop the work; to continue, acquire again.")


def _warn_dropped(name: str, lost: threading.Event) -> None:
    if not lost.is_set():
        _log.warning("%s: the lease was dropped without a release; it is no longer renewed and ends with its TTL", name)
        lost.set()


def _run_steps(ref: weakref.ref[Lease], ended: threading.Event, step: Callable[[Lease], float],
          last: Optional[Callable[[Lease], None]]) -> None:
    """Runs step, which returns the next pause, until the lease ends or has no reference; then runs last."""
    pause = 0.0
    while not ended.wait(pause):
        lease = ref()
        if lease is None:
            return
        pause = step(lease)
        del lease  # a waiting thread must not keep the lease alive
    lease = ref()
    if lease is not None and last is not None:
        last(lease)


def _terminate(child: subprocess.Popen[Any], clock: Callable[[], float], until: float) -> None:
    """Sends SIGTERM to the child's group, and SIGKILL to the rest of it at the given instant."""
    try:
        os.killpg(child.pid, signal.SIGTERM)
        while clock() < until:
            child.poll()
            os.killpg(child.pid, 0)
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # the group is gone; macOS raises the latter for zombies
        pass
    child.wait()
