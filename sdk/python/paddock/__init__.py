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
is safe for use by multiple threads. Each of its methods sends one request; hold and hold_session are the guards built on
them. A session keeps the leases that are acquired in it alive by one renewal for all of them; they end together.
Several locks are acquired together, all or none, by a list instead of a name; see Locks.

The guard chooses the lease_id and repeats an acquire whose response is lost, so no unknown lease remains. A long wait
takes several calls, which keep one place. They ask for a ttl of 5 seconds at most, and the first renewal, before hold
returns, for the whole: if the process was stopped while it waited, the lock is free within seconds. One thread renews the lease every third of its TTL, or slightly sooner;
another checks the clock. A lease of a session needs neither. The deadline is the remaining time when the last
successful request was sent, minus a margin.

    held      the last renewal succeeded
    at_risk   a renewal failed and is retried; the work may continue until the deadline
    lost      the service said lease_lost, or the deadline has passed: stop the work. This state is final
    released  the lease was released

Python cannot stop a thread, so the work must call check(), watch the event lost, run as a child process (run) or be
interrupted in the main thread (interrupt_main). No client can close the gap between a check and a write: check the
token where the write happens. After a fork, the child does not renew; check() passes until the deadline at the fork.
"""

from __future__ import annotations

import calendar
import contextlib
import contextvars
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
import sys
import threading
import time
import urllib.parse
import uuid
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NoReturn, Optional, Sequence, Tuple, Type, TypeVar, Union

__version__ = "0.2.0"
HELD, AT_RISK, LOST, RELEASED = "held", "at_risk", "lost", "released"
DEFAULT_TTL = 30.0
MAX_DEFAULT_MARGIN = 5.0
MAX_CALL_WAIT = 25.0  # the service allows 50, proxies often 60
WAIT_TTL = 5.0  # the longest ttl in a call that waits; the first renewal asks for the whole
MAX_TASK_ID = 256
MAX_HOLDER = 200  # characters
MAX_BATCH = 1000  # items
RELEASE_TIMEOUT = 2.0  # of one attempt
TICK = 1.0  # the longest wait of a thread: a wait does not count the time of a suspension
POLL = 0.05  # the interval at which a child process is polled
MAX_RESPONSE = 16 << 20  # bytes
MAX_IDLE, IDLE_TIMEOUT = 32, 50.0  # of kept connections
_log = logging.getLogger("paddock")
_task: contextvars.ContextVar[str] = contextvars.ContextVar("paddock task", default="")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")
_UNCHANGED = "Nothing was changed. Try again."
_MAYBE_CHANGED = "The call may or may not have taken effect. Send the same call again to find out; do not treat the lease as lost."
# The statuses with which a proxy rejects a request before it forwards it.
_REJECTED_BY_PROXY = frozenset({401, 403, 404, 405, 413, 415, 429, 431})

Json = Dict[str, Any]
# The name of a lock; or a list of up to 32 locks that are acquired together, all or none: names, or dicts with a name,
# a mode and a capacity. The mode and the capacity of the call are for those without a mode.
Locks = Union[str, Sequence[Union[str, Mapping[str, Any]]]]
_Self = TypeVar("_Self", bound="_Renewed")


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
        limited = self.status == 429 and self.code != "too_many_leases"  # which ends when the session releases some
        return limited or (self.status or 0) >= 500 or isinstance(self, (Unavailable, UnknownOutcome))


class InvalidRequest(PaddockError, ValueError):
    """An argument is invalid; see detail."""


class LockHeld(PaddockError):
    """Another holder has the lock, or one of the locks; see holder and retry_after."""

    @property
    def blockers(self) -> List[Json]:
        """Of several locks, or in a tree, those in the way: each with name, retry_after_ms and, where known, holder and ahead."""
        return self.fields.get("blockers") or []


class Deadlock(PaddockError):
    """The call waited in a circle of calls that wait for each other, and gave way: release what you hold, and begin again."""

    @property
    def cycle(self) -> List[Json]:
        """The circle, this call first: each with the name of the lock, the holder of the call, waits_for (the holder in
        the way) and, if that one only waits ahead in the queue, ahead."""
        return self.fields.get("cycle") or []


class LeaseLost(PaddockError):
    """The lease has ended or is about to end: stop the work. fields["ended"] says how it ended, if known."""


class SessionLost(PaddockError):
    """The session has ended or is about to end, and its leases with it: stop all of its work, then open a new one.
    fields["ended"] says how it ended, if known."""


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
    "invalid_request": InvalidRequest, "lock_held": LockHeld, "deadlock": Deadlock, "lease_lost": LeaseLost,
    "session_lost": SessionLost, "stale_token": StaleToken,
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

    def __init__(self, base_url: str, headers: Mapping[str, str], tls: Union[ssl.SSLContext, Callable[[], ssl.SSLContext], None],
                 key: _Key) -> None:
        self._socket = base_url[len("unix:"):] if base_url.startswith("unix:") else None
        if self._socket is not None:
            if not self._socket.startswith("/"):
                raise ValueError("the base URL is a socket without an absolute path; pass unix:/run/paddock.sock")
            if not hasattr(socket, "AF_UNIX"):
                raise ValueError("the base URL is a socket in the file system, which Python does not support on this platform")
            base_url = "http://localhost"
        url = urllib.parse.urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc or url.query or url.fragment:
            raise ValueError("the base URL must be http://HOST or https://HOST, optionally with a port and a path, without query, "
                             "fragment or user, or a socket such as unix:/run/paddock.sock; pass an API key as key and other "
                             "credentials as headers")
        self._secure, self._key = url.scheme == "https", key
        self._address = (url.hostname, url.port or (443 if self._secure else 80))
        context = tls or (ssl.create_default_context() if self._secure else None)
        self._context: Callable[[], Any] = context if callable(context) else lambda: context
        self._prefix = urllib.parse.quote(url.path.rstrip("/"), safe="/%")
        self._headers = {"User-Agent": f"paddock-python/{__version__}", **headers}
        self._idle: List[Tuple[int, float, http.client.HTTPConnection]] = []

    def exchange(self, method: str, path: str, body: Optional[bytes], timeout: float) -> Tuple[http.client.HTTPResponse, bytes]:
        """Sends one request; again if its key is refused and there is another one meanwhile. Raises Unavailable if nothing
        was sent, otherwise OSError or HTTPException."""
        key = self._key.read()
        response, content = self._exchange(method, path, body, timeout, key)
        again = self._key.read(refused=True) if response.status == 401 and _is_paddock(response) else key
        return (response, content) if again == key else self._exchange(method, path, body, timeout, again)

    def _exchange(self, method: str, path: str, body: Optional[bytes], timeout: float, key: str) -> Tuple[http.client.HTTPResponse, bytes]:
        connection = self._ready(timeout)
        try:
            connection.sock.settimeout(timeout)
            headers = {**self._headers, **({"Authorization": f"Bearer {key}"} if key else {}),
                       **({} if body is None else {"Content-Type": "application/json"})}
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
        try:
            connection = (_SocketConnection(self._socket, timeout) if self._socket is not None
                          else http.client.HTTPSConnection(*self._address, timeout=timeout, context=self._context()) if self._secure
                          else http.client.HTTPConnection(*self._address, timeout=timeout))
            connection.connect()
        except OSError as e:
            raise Unavailable("unavailable", f"The request was not sent: {e}. {_UNCHANGED}") from e
        return connection

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[2].close()


class _SocketConnection(http.client.HTTPConnection):
    """A connection to the service on a socket in the file system."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(self.timeout)
            sock.connect(self._path)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


class _Key:
    """The API key, or a function that returns it. After an error of the function, the key before is used."""

    def __init__(self, key: Union[str, Callable[[], str], None], headers: Mapping[str, str]) -> None:
        if key is not None and any(name.lower() == "authorization" for name in headers):
            raise ValueError("key and the header Authorization are both set; pass only one of them")
        self._read = key if callable(key) else None
        self._last = "" if key is None or callable(key) else self._checked(key)

    @staticmethod
    def _checked(key: str) -> str:
        """Returns the key. Errors do not repeat it."""
        if not re.fullmatch("[!-~]+", key):
            raise ValueError("the key is empty or has an invalid character; pass the API key exactly as you received it")
        return key

    def read(self, refused: bool = False) -> str:
        """Returns the key to send, or an empty one. refused says that the service has refused the last one."""
        if self._read is not None:
            try:
                self._last = self._checked(self._read())
            except Exception as e:
                if refused or not self._last:
                    why = "The service refused the key, and the key" if refused else "The request was not sent: the key"
                    raise Unavailable("unavailable", f"{why} cannot be read: {e}. {_UNCHANGED}") from e
        return self._last


def _is_idle(sock: socket.socket) -> bool:
    """Reports whether a kept connection is still open and has no unread data."""
    try:
        sock.setblocking(False)
        socket.socket.recv(sock, 1, socket.MSG_PEEK)  # below TLS, which does not peek
    except OSError as e:
        return isinstance(e, BlockingIOError)
    return False


def _is_paddock(response: http.client.HTTPResponse) -> bool:
    """Reports whether a Paddock sent the response, whatever its status: not a proxy or a captive portal."""
    return bool(response.headers.get("Paddock-Api") == "v1")


def _decode(response: http.client.HTTPResponse, content: bytes, content_type: str) -> Json:
    """Returns the JSON object of a response of Paddock with this content type, or an empty one."""
    try:
        value = json.loads(content) if _is_paddock(response) and response.headers.get_content_type() == content_type else {}
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


def _names(locks: Sequence[Union[str, Mapping[str, Any]]]) -> List[str]:
    if not isinstance(locks, (list, tuple)):  # of a dict, the keys would be names
        raise InvalidRequest("invalid_request", "Use the name of a lock, or a list of names or dicts.")
    return [lock if isinstance(lock, str) else str(lock.get("name", "")) for lock in locks]


def _lock_path(locks: Locks, verb: str) -> str:
    return _path("/v1/locks", locks, verb) if isinstance(locks, str) else f"/v1{verb}"


def _modes(locks: Locks, mode: str, capacity: Optional[int]) -> Json:
    """Returns the members of an acquire that say which locks to acquire, besides the name in its path."""
    own: Json = {"mode": mode, "capacity": capacity}
    if isinstance(locks, str):
        return own
    dicts = [{"name": lock} if isinstance(lock, str) else dict(lock) for lock in locks]
    return {"locks": [_omit_none(**(lock if "mode" in lock else {**own, **lock})) for lock in dicts]}


def _path(prefix: str, name: str, verb: str = "") -> str:
    if not _NAME.fullmatch(name):
        raise InvalidRequest("invalid_request", f"{name!r} is not a valid name; use 1 to 200 of A-Z a-z 0-9 . _ : @ -")
    return f"{prefix}/{urllib.parse.quote(name, safe='')}{verb}"


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
    def slots(self) -> Dict[str, int]:
        """The slot of each lock, in the order of the names."""
        return {lock["name"]: lock["slot"] for lock in self.answer.get("locks", ())} or {self.name: self.slot}


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


class Paddock:
    """A client of a Paddock service. Each method sends one request, once, without retries or renewals, except hold and
    hold_session.
    base_url is the URL above /v1, such as https://locks.example.org. For a service that listens on a socket on the same
    machine it is unix:/run/paddock.sock; then tls is not used.
    timeout limits each step of a call: connecting, sending, and waiting for the response beyond the requested wait.
    key is the API key, which starts with pk_, if the service requires one; it appears in no error. headers are sent
    with each call. tls is for your own certificates. Where they are replaced while the program runs, pass functions:
    key is called for each request, and again if the service refuses the key; tls for each new connection. clock is for
    tests; it must continue while the machine is suspended. Raises ValueError for an invalid base_url or key. Sends no request."""

    def __init__(self, base_url: str, *, key: Union[str, Callable[[], str], None] = None, timeout: float = 10.0,
                 headers: Optional[Mapping[str, str]] = None,
                 tls: Union[ssl.SSLContext, Callable[[], ssl.SSLContext], None] = None, clock: Optional[Callable[[], float]] = None) -> None:
        boot = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else None
        self.base_url: str = base_url
        self.timeout: float = timeout
        self.clock: Callable[[], float] = clock or boot or SuspendClock()
        self._transport = _Transport(base_url, headers or {}, tls, _Key(key, headers or {}))

    def close(self) -> None:
        """Closes the kept connections. The Paddock can still be used."""
        self._transport.close()

    def acquire(self, name: Locks, *, lease_id: Optional[str] = None, wait: float = 0.0, keep_place: bool = False,
                timeout: Optional[float] = None, holder: Optional[str] = None, ttl: Optional[float] = None,
                mode: str = "exclusive", capacity: Optional[int] = None, grace: Optional[float] = None,
                max_hold: Optional[float] = None, session_id: Optional[str] = None, metadata: Optional[Json] = None,
                task_id: Optional[str] = None) -> Grant:
        """Acquires the lock, or several, all or none: they have one lease_id, and hold nothing while they wait. Raises
        LockHeld if they are not granted within wait, which is at most 50. Choose the lease_id, a random UUID, yourself, to
        be able to send the call again after UnknownOutcome. It then keeps its place in the queue until wait is over if the
        call is interrupted: release it if you do not call again. keep_place keeps it for ten seconds after a wait that
        ended without a grant. Without a lease_id, the service chooses one. After a wait, renew immediately: expires_in
        counts from sent and may already be over. With a session_id, the lease is kept alive by that session, whose ttl and
        grace it has: leave them out. Raises SessionLost if that has ended. The task_id names the thread of work, by which the service
        finds deadlocks; see hold. Raises Deadlock if this call must give way."""
        body = _omit_none(lease_id=lease_id, holder=holder or _default_holder(not lease_id), session_id=session_id,
                          task_id=task_id, wait_ms=_ms(wait), keep_place=keep_place or None, ttl_ms=_ms(ttl),
                          grace_ms=_ms(grace), max_hold_ms=_ms(max_hold), metadata=metadata, **_modes(name, mode, capacity))
        return self._grant(name, "/acquire", body, self.timeout + wait if timeout is None else timeout)

    def renew(self, name: Locks, lease_id: str, *, ttl: Optional[float] = None, metadata: Optional[Json] = None,
              timeout: Optional[float] = None) -> Grant:
        """Renews the lease, or raises LeaseLost. Omitted arguments stay unchanged. The lease of a session ends with the
        session, so its renewal moves nothing and must not have a ttl. Locks that were acquired together are renewed
        together; the code lease_in_set is for one of them alone, and its fields["set"] has all names."""
        names = None if isinstance(name, str) else _names(name)
        return self._grant(name, "/renew", _omit_none(lease_id=lease_id, names=names, ttl_ms=_ms(ttl), metadata=metadata), timeout)

    def release(self, name: Locks, lease_id: str, *, timeout: Optional[float] = None) -> None:
        """Releases the lease or the place in the queue; may be repeated. Raises LeaseLost if it ended otherwise. Locks
        that were acquired together are released together."""
        names = None if isinstance(name, str) else _names(name)
        self._call("POST", _lock_path(name, "/release"), _omit_none(lease_id=lease_id, names=names), changes=True, timeout=timeout)

    def revoke(self, name: str, *, token: int, reason: str, slot: Optional[int] = None,
               acquired_at: Optional[str] = None, skip_grace: bool = False) -> Json:
        """Revokes the leases with this token and returns the lock; the code token_mismatch if there are none.
        The lease's grace still blocks other grants, unless skip_grace is true."""
        body = _omit_none(fencing_token=token, reason=reason, slot=slot, acquired_at=acquired_at, skip_grace=skip_grace or None)
        return self._call("POST", _path("/v1/locks", name, "/revoke"), body, changes=True, has=("state",), name=name)

    def open_session(self, *, session_id: Optional[str] = None, holder: Optional[str] = None, ttl: Optional[float] = None,
                     grace: Optional[float] = None, metadata: Optional[Json] = None, timeout: Optional[float] = None) -> SessionGrant:
        """Opens a session, or returns the one that an earlier call with this session_id and holder has opened. Choose
        the session_id, a random UUID, yourself, to be able to send the call again after UnknownOutcome."""
        body = _omit_none(session_id=session_id or str(uuid.uuid4()), holder=holder or _default_holder(not session_id), ttl_ms=_ms(ttl),
                          grace_ms=_ms(grace), metadata=metadata)
        return self._session_grant("", body, timeout)

    def renew_session(self, session_id: str, *, ttl: Optional[float] = None, timeout: Optional[float] = None) -> SessionGrant:
        """Renews the session and thus all of its leases, or raises SessionLost. answer has the number of revoked_leases. If
        it has grown since the last answer, renew each lease to find out which has ended."""
        return self._session_grant("/renew", _omit_none(session_id=session_id, ttl_ms=_ms(ttl)), timeout)

    def close_session(self, session_id: str, *, timeout: Optional[float] = None) -> None:
        """Releases all leases of the session, gives up its places and ends it; may be repeated. Raises SessionLost if it
        ended otherwise."""
        self._call("POST", "/v1/sessions/close", {"session_id": session_id}, changes=True, timeout=timeout)

    def sessions(self, *, holder: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None) -> Json:
        """Returns a page of open sessions in the order of their public names; the last page has no next_cursor."""
        query = urllib.parse.urlencode(_omit_none(holder=holder, limit=limit, cursor=cursor))
        return self._call("GET", f"/v1/sessions?{query}", has=("sessions",))

    def session(self, ref: str) -> Json:
        """Returns the session with this public name, and its leases and places. Raises the code not_found if there is none."""
        return self._call("GET", _path("/v1/sessions", ref), has=("leases", "places"), session=ref)

    def revoke_session(self, ref: str, *, reason: str, skip_grace: bool = False) -> Json:
        """Ends the session with this public name and its leases, and returns it. Its grace still blocks other grants,
        unless skip_grace is true. Raises SessionLost if it had ended otherwise."""
        body = _omit_none(reason=reason, skip_grace=skip_grace or None)
        return self._call("POST", _path("/v1/sessions", ref, "/revoke"), body, changes=True, has=("leases", "places"), session=ref)

    def declare_tree(self, root: str) -> Json:
        """Declares the tree of root and all names that begin with it and a colon, and returns it; may be repeated. There, a
        lock covers all locks below it. Raises the codes tree_busy while one is held or waited for, and tree_overlaps."""
        return self._call("PUT", _path("/v1/trees", root), changes=True, has=("declared_at",), root=root)

    def remove_tree(self, root: str) -> None:
        """Makes the locks of the tree independent; may be repeated. Raises the code tree_busy like declare_tree."""
        self._call("DELETE", _path("/v1/trees", root), changes=True)

    def trees(self) -> Json:
        """Returns all declared trees in the order of their roots."""
        return self._call("GET", "/v1/trees", has=("trees",))

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

    def holds(self, name: str, *, at: Optional[str] = None, until: Optional[str] = None, limit: Optional[int] = None) -> Json:
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

    def hold(self, name: Locks, *, ttl: Optional[float] = None, wait: Optional[float] = 0.0, retry: float = 10.0,
             margin: Optional[float] = None, on_state: Optional[Callable[[str, Optional[Exception]], object]] = None,
             on_lost: Optional[Callable[[LeaseLost], object]] = None, interrupt_main: bool = False,
             on_acquired: Optional[Callable[[float, Optional[BaseException]], object]] = None,
             on_renewed: Optional[Callable[[float, Optional[Exception]], object]] = None,
             holder: Optional[str] = None, mode: str = "exclusive", capacity: Optional[int] = None,
             grace: Optional[float] = None, max_hold: Optional[float] = None, metadata: Optional[Json] = None,
             session: Optional[Session] = None, task_id: Optional[str] = None) -> Lease:
        """Acquires the lock, or several, all or none, and renews the lease until it is released. Use it in a with
        statement.

        ttl       how long the lease lasts without a renewal; the default is 30
        wait      how long to wait in the queue: 0 does not wait, None waits without limit; then LockHeld
        retry     how long to retry while the service cannot be reached, or wait if that is longer; then Unavailable
        margin    how long before its end the lease counts as lost: the time your work needs to stop, at most a third
                  of ttl; the default is a tenth of ttl, at most 5 seconds
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

        If the wait ends in any way, KeyboardInterrupt included, the place and a lease granted meanwhile are released.
        """
        want = {"holder": holder, "ttl": ttl, "mode": mode, "capacity": capacity, "grace": grace, "max_hold": max_hold,
                "metadata": metadata, "task_id": task_id or _new_task()}
        if session is not None:
            want, margin = session._want(self, want, margin), session._margin
        else:
            want["ttl"], margin = _check_times(ttl, margin, wait)
        want["holder"] = want["holder"] or _default_holder()
        _check_interrupt(interrupt_main)
        began, revoked = self.clock(), session._revoked if session is not None else 0
        try:
            grant = _acquire_lease(self, name, want, margin, math.inf if wait is None else wait, retry, session)
        except BaseException as e:
            _call(str(name), on_acquired, self.clock() - began, e)
            raise
        try:
            _call(str(name), on_acquired, self.clock() - began, None)
            return Lease(self, grant, margin, on_state, on_lost, interrupt_main, on_renewed, session, want["task_id"], revoked)
        except BaseException:
            _abandon(self, name, grant.lease_id)
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
        lasts, margin = _check_times(ttl, margin)
        _check_interrupt(interrupt_main)
        grant = _open_session(self, {"session_id": session_id, "holder": holder or _default_holder(False), "ttl": lasts, "grace": grace, "metadata": metadata},
                              margin, retry)
        return Session(self, grant, margin, on_state, on_lost, interrupt_main, on_renewed, holder)

    def _grant(self, name: Locks, verb: str, body: Json, timeout: Optional[float]) -> Grant:
        sent, one, same = self.clock(), isinstance(name, str), {"name": name} if isinstance(name, str) else {}
        if "lease_id" in body:
            same["lease_id"] = body["lease_id"] = body["lease_id"].lower()
        a = self._call("POST", _lock_path(name, verb), body, changes=True, timeout=timeout, names=[] if one else sorted(_names(name)),
                       has=(*(("fencing_token", "slot") if one else ("locks",)), "lease_id", "ttl_ms", "expires_in_ms"), **same)
        of = a if one else a["locks"][0]
        return Grant(of["name"], a["lease_id"], of["fencing_token"], of["slot"], a["ttl_ms"] / 1000, a["expires_in_ms"] / 1000, sent, a)

    def _session_grant(self, verb: str, body: Json, timeout: Optional[float]) -> SessionGrant:
        sent, body["session_id"] = self.clock(), body["session_id"].lower()
        a = self._call("POST", f"/v1/sessions{verb}", body, changes=True, timeout=timeout, session_id=body["session_id"],
                       has=("session", "holder", "ttl_ms", "expires_in_ms", "revoked_leases"))
        return SessionGrant(a["session_id"], a["session"], a["ttl_ms"] / 1000, a["expires_in_ms"] / 1000, sent, a)

    def _call(self, method: str, path: str, body: Optional[Json] = None, *, changes: bool = False,
              timeout: Optional[float] = None, has: Sequence[str] = (), names: Sequence[str] = (), **same: str) -> Json:
        """One request. Its answer has the members has and same, and locks of these names; without has it is 204."""
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
        if response.status == 204 and not has and _is_paddock(response):
            return {}
        answer = _decode(response, content, "application/json") if response.status in (200, 201) else {}
        if (not has or not all(key in answer for key in has) or any(answer.get(key) != same[key] for key in same)
                or names and names != _names(answer["locks"])):
            raise _error_of(response, content, changes)
        return answer


def _backoff(first: float, longest: float) -> Iterator[float]:
    while True:
        yield random.uniform(first / 2, first)
        first = min(first * 2, longest)


def _new_task() -> str:
    """Returns a part of the task around it, or a new task. Threads that work under one lease are not parts of each other."""
    outer, part = _task.get() or os.environ.get("PADDOCK_TASK", ""), uuid.uuid4().hex
    return f"{outer}.{part[:8]}" if outer and len(outer) + 9 <= MAX_TASK_ID else part


def _default_holder(of_thread: bool = True) -> str:
    """Returns the host and the process, and the asyncio task or the thread, unless that is the main thread: deadlocks are
    between threads. Not of_thread: so that other threads may repeat the call."""
    holder, asyncio = f"{socket.gethostname()}:{os.getpid()}", sys.modules.get("asyncio")
    name = threading.current_thread().name if threading.current_thread() is not threading.main_thread() else ""
    with contextlib.suppress(AttributeError, RuntimeError):  # asyncio is not used, or runs no task in this thread
        name = asyncio.current_task().get_name()  # type: ignore[union-attr]
    if name and of_thread:
        holder += ":" + "".join(c if c.isprintable() else "?" for c in name)
    return holder[:MAX_HOLDER]


def _check_times(ttl: Optional[float], margin: Optional[float], wait: Optional[float] = 0.0) -> Tuple[float, float]:
    """Returns the ttl and the margin with their defaults."""
    ttl = DEFAULT_TTL if ttl is None else ttl
    margin = min(ttl / 10, MAX_DEFAULT_MARGIN) if margin is None else margin
    if not 0 < ttl < math.inf or not 0 < margin <= ttl / 3 or not (wait or 0) >= 0:
        raise InvalidRequest("invalid_request", "Use a ttl above 0, a margin of at most a third of it, and a wait of 0 or more.")
    return ttl, margin


def _check_interrupt(interrupt_main: bool) -> None:
    if interrupt_main and (threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGURG")):
        raise InvalidRequest("invalid_request", "interrupt_main works only in the main thread, on POSIX; use the event lost instead.")


def _too_slow() -> PaddockError:
    return Unavailable("unavailable", "The service responds too slowly for this ttl; use a longer one.")


def _open_session(paddock: Paddock, want: Json, margin: float, retry: float) -> SessionGrant:
    """Opens and returns a session that has more than the margin left. One that remains after a failure has no leases."""
    clock, pauses, chosen = paddock.clock, _backoff(0.1, 2.0), want["session_id"]
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
        time.sleep(min(max(next(pauses), error.retry_after), max(retry_until - clock(), 0.0)))


def _acquire_lease(paddock: Paddock, name: Locks, want: Json, margin: float, wait: float, retry: float,
                   session: Optional[Session] = None) -> Grant:
    """Acquires and returns a lease that has more than the margin left."""
    clock, lease_id, pauses = paddock.clock, str(uuid.uuid4()), _backoff(0.1, 2.0)
    wait_until, retry_until = clock() + wait, clock() + max(wait, retry)
    short = None if session is not None else min(want["ttl"], WAIT_TTL)
    waits = short is None or short == want["ttl"]  # else first a try for the whole ttl: a free lock costs no renewal
    try:
        while True:
            left, began = max(wait_until - clock(), 0.0) if waits else 0.0, clock()
            try:
                if session is not None:
                    session.check()
                ask: Json = {**want, "lease_id": lease_id, "wait": min(left, MAX_CALL_WAIT), "keep_place": left > MAX_CALL_WAIT}
                grant = paddock.acquire(name, **(ask if left == 0 else {**ask, "ttl": short}))
                if session is not None:
                    session.check()
                    return grant
                if clock() > grant.sent + margin or _ms(grant.ttl) != _ms(want["ttl"]):  # after a wait or a slow response
                    grant = paddock.renew(name, lease_id, ttl=want["ttl"])
                if clock() < grant.until - margin:
                    return grant
                error: PaddockError = _too_slow()
            except LeaseLost as e:  # before the caller got it: no work was done under that lease
                error, lease_id = e, str(uuid.uuid4())
            except PaddockError as e:
                if isinstance(e, LockHeld) and clock() < wait_until:
                    waits = True
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
                pauses = _backoff(0.1, 2.0)  # the connection was cut during a wait, and the waiter is skipped until it returns
            time.sleep(min(max(next(pauses), error.retry_after), max(retry_until - clock(), 0.0)))
    except BaseException as e:
        unsure = (not isinstance(e, PaddockError) or e.transient or isinstance(e, SessionLost) and e.status is None
                  or "place_kept_ms" in e.fields)
        if unsure:
            _abandon(paddock, name, lease_id)
        raise


def _abandon(paddock: Paddock, name: Locks, lease_id: str) -> None:
    """Releases an unused lease or place. If that fails, a place ends within a minute and a lease with its TTL."""
    try:
        paddock.release(name, lease_id, timeout=RELEASE_TIMEOUT)
    except PaddockError as e:
        _log.debug("%s: cannot release: %s", name, e)


class _Renewed:
    """A lease or a session, which is renewed in the background until it is lost or released."""

    _LOST: Type[PaddockError] = LeaseLost
    _OVERDUE: str = "The lease was not renewed in time. Stop the work; to continue, acquire again."
    _ENDED: str = "The lease was released; no work may continue under it."
    _DROPPED: str = "the lease was dropped without a release"

    def __init__(self, label: str, paddock: Paddock, grant: Union[Grant, SessionGrant], margin: float,
                 on_state: Optional[Callable[..., object]], on_lost: Optional[Callable[..., object]], interrupt_main: bool,
                 on_renewed: Optional[Callable[..., object]]) -> None:
        self.lost: threading.Event = threading.Event()
        self._label, self._paddock, self._margin, self._on_state, self._on_lost = label, paddock, margin, on_state, on_lost
        self._on_renewed = on_renewed
        self._losses: List[PaddockError] = []  # the first counts; no mutex, since signals and forks come at any time
        self._released = self._new_loss(self._ENDED)
        self._failure: Optional[Exception] = None
        self._pid, self._release_done, self._notify_lock = os.getpid(), False, threading.RLock()
        self._interrupt_main, self._armed = interrupt_main, False
        self.task_id: str = ""  # of a lease: its thread of work
        self._outer_tasks: List[str] = []  # those around the with statements
        self._update(grant)

    def _start(self) -> None:
        weakref.finalize(self, _warn_dropped, self._label, self._DROPPED, self.lost).atexit = False
        self._start_threads(("_check_deadline", "_notify_loss"), ("_renew", ""))

    def _start_threads(self, *steps: Tuple[str, str]) -> None:
        for step, last in steps:
            threading.Thread(target=_run_steps, args=(weakref.ref(self), self.lost, step, last), name="paddock lease", daemon=True).start()

    @property
    def state(self) -> str:
        """held, at_risk, lost or released."""
        if self._losses:
            return RELEASED if self._losses[0] is self._released else LOST
        return AT_RISK if self.error else HELD

    @property
    def error(self) -> Optional[Exception]:
        """Why it is at risk, lost or released."""
        return self._losses[0] if self._losses else self._failure

    @property
    def deadline(self) -> float:
        """The instant, on the Paddock's clock, from which it counts as lost unless it is renewed."""
        return self._deadline

    def remaining(self) -> float:
        """Returns the seconds until the deadline; 0 if it is lost or released. It reads the clock."""
        return 0.0 if self._losses else max(self.deadline - self._paddock.clock(), 0.0)

    def check(self) -> None:
        """Raises LeaseLost, or SessionLost for a session, if it is lost or released, or the deadline has passed."""
        if self._check_deadline() <= 0:
            self._raise_loss()

    def _raise_loss(self) -> NoReturn:
        raise type(self._losses[0])(*self._losses[0].args) from self._losses[0].__cause__

    def _new_loss(self, detail: str) -> PaddockError:
        return self._LOST("lease_lost" if self._LOST is LeaseLost else "session_lost", detail)

    def _overdue(self) -> PaddockError:
        """Returns the loss at the deadline, with the error of the last renewal if that has failed."""
        why = self._failure
        loss = self._new_loss(self._OVERDUE if why is None else f"{self._OVERDUE} The last renewal failed: {why}")
        loss.__cause__ = why
        return loss

    def _end(self, timeout: float) -> None:
        """Ends it here and at the service, see Lease.release."""
        if os.getpid() != self._pid:
            return
        clock, pauses = self._paddock.clock, _backoff(0.05, 1.0)
        until = clock() + timeout
        self._check_deadline()
        self._lose(self._released)
        while not self._release_done:
            try:
                self._send_release(min(max(until - clock(), 0.1), RELEASE_TIMEOUT))
            except self._LOST as e:
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
                self._raise_loss()

    def __enter__(self: _Self) -> _Self:
        self._outer_tasks.append(_task.get())
        _task.set(self.task_id or _task.get())
        if self._interrupt_main:
            self._handler, self._armed = signal.signal(signal.SIGURG, self._interrupt), True
            if self.lost.is_set():  # too early for an interrupt
                self.__exit__(None, None, None)
        return self

    def __exit__(self, _: Optional[Type[BaseException]], error: Optional[BaseException], __: Optional[TracebackType]) -> None:
        if self._outer_tasks:
            _task.set(self._outer_tasks.pop())
        armed, self._armed = self._armed, False
        if self._interrupt_main:
            signal.signal(signal.SIGURG, self._handler or signal.SIG_DFL)
        try:
            self._end(5.0)
        except self._LOST as lost:
            if error is None or (self._interrupt_main and not armed and isinstance(error, KeyboardInterrupt)):
                raise
            if not isinstance(error, (LeaseLost, SessionLost)):
                _log.warning("%s: the work failed with %r and may have overlapped: %s", self._label, error, lost)
        except PaddockError as e:
            _log.warning("%s: it is not released and ends with its TTL: %s", self._label, e)

    def _check_deadline(self) -> float:
        """Marks it lost if its deadline has passed; returns how long to wait until the next check."""
        left = self.remaining()
        if left <= 0:
            self._lose(self._overdue())
        return min(left, TICK)

    def _update(self, grant: Union[Grant, SessionGrant]) -> None:
        self._ttl, self._failure, self._backoff = grant.ttl, None, _backoff(grant.ttl / 60, grant.ttl / 12)
        self._deadline = grant.until - self._margin
        self._due = grant.sent + min(grant.ttl, grant.expires_in) / 3 * random.uniform(0.85, 1)

    def _send_renewal(self, timeout: float) -> Union[Grant, SessionGrant]:
        raise NotImplementedError

    def _send_release(self, timeout: float) -> None:
        raise NotImplementedError

    def _renew(self) -> float:
        """Renews it if a renewal is due; returns how long to wait until the next check."""
        early = self._due - self._paddock.clock()
        if early > 0:
            return min(early, TICK)
        was_failing = self._failure is not None
        try:
            grant = self._send_renewal(min(self._paddock.timeout, self._ttl / 6, max(self.remaining(), 0.01)))
        except self._LOST as e:
            self._observe(e)
            self._lose(e)
        except Exception as e:  # any error: retry until the deadline
            self._observe(e)
            self._failure = e
            pause = max(next(self._backoff), getattr(e, "retry_after", 0.0))
            self._due = self._paddock.clock() + max(min(pause, self.remaining() / 3), 0.01)
            if not was_failing:
                self._notify_state(AT_RISK, e)
        else:
            self._observe(None)
            if self._check_deadline() > 0:  # a response after the deadline does not revive it
                self._update(grant)
                if was_failing:
                    self._notify_state(HELD, None)
        return 0.0

    def _observe(self, error: Optional[Exception]) -> None:
        left = self.deadline + self._margin - self._paddock.clock()
        _call(self._label, self._on_renewed, left / self._ttl, error)

    def _lose(self, why: PaddockError) -> None:
        if not self._losses:
            self._losses.append(why)
        if os.getpid() == self._pid:  # after a fork, the lock of an event may stay locked
            self.lost.set()

    def _notify(self, state: str, listener: Optional[Callable[..., object]], *args: object) -> None:
        """Calls the listener unless the state has changed meanwhile; in order, although two threads call it."""
        with self._notify_lock:
            if self.state == state:
                _call(self._label, listener, *args)

    def _notify_state(self, state: str, error: Optional[Exception]) -> None:
        self._notify(state, self._on_state, state, error)

    def _notify_loss(self) -> None:
        self._notify(LOST, self._on_lost, self.error)
        self._notify(LOST, self._on_state, LOST, self.error)
        while self._armed and self.state == LOST:  # until the main thread was interrupted or has left the block
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGURG)
            time.sleep(POLL)

    def _interrupt(self, number: int, frame: Optional[FrameType]) -> None:
        outside = frame is None or frame.f_code in (_Renewed.__enter__.__code__, _Renewed.__exit__.__code__)
        if self._armed and self.state == LOST and not outside:
            self._armed = False
            raise KeyboardInterrupt
        if callable(self._handler):
            self._handler(number, frame)


class Lease(_Renewed):
    """A lease that is renewed in the background, from Paddock.hold. A with statement releases it at its end, and
    raises LeaseLost if it was lost: the work may have overlapped with another holder's. lost is an event that is set
    when the lease is lost or released: no work may continue under it. deadline is an instant on the Paddock's clock.
    error says why the lease is at risk or lost. A lease without any reference to it is no longer renewed.
    A lease of a session has the state and the deadline of the session, and is lost when that is lost or closed.
    A lease of several locks is renewed, lost and released as a whole. name, token and slot are those of the first lock, in
    the order of the names; tokens and slots have those of each."""

    def __init__(self, paddock: Paddock, grant: Grant, margin: float, on_state: Optional[Callable[..., object]],
                 on_lost: Optional[Callable[..., object]], interrupt_main: bool, on_renewed: Optional[Callable[..., object]] = None,
                 session: Optional[Session] = None, task_id: str = "", held_at: int = 0) -> None:
        self._held_at = held_at  # the session's number of revoked leases when it was last known to be held
        self.name: str = grant.name
        self.token: int = grant.token
        self.slot: int = grant.slot
        self.tokens: Dict[str, int] = grant.tokens
        self.slots: Dict[str, int] = grant.slots
        self._locks: Locks = list(grant.tokens) if len(grant.tokens) > 1 else grant.name
        self._granted, self._session, self._has_thread = grant, session, True
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
            self._start_threads(("_check_deadline", "_notify_loss"))

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
        lease is no longer renewed and ends with its TTL, or with its session."""
        self._end(timeout)

    def run(self, argv: Sequence[str], *, kill_after: Optional[float] = None, **popen: Any) -> int:
        """Runs a child process under the lease and returns its exit code, or -N if signal N killed it.
        The child leads its own process group. Before another holder can get the lock, the group gets SIGTERM and,
        after kill_after seconds, SIGKILL; if the lease has already ended, both immediately. Then LeaseLost is raised.
        The default kill_after is half the margin, the maximum a third of the ttl. When the child ends or an exception
        is raised, the rest of the group is stopped in the same way; processes that left the group are not. The child's
        environment has PADDOCK_LOCK, _FENCING_TOKEN, _LEASE_HOLDER, _URL and, if there is one, _SLOT; and of all locks, _LOCKS,
        _FENCING_TOKENS and _SLOTS, such as "a b" and "a=10496 b=10496". popen goes to subprocess.Popen. If this process is
        killed, the child continues without a guard. POSIX only."""
        kill_after = self._margin / 2 if kill_after is None else kill_after
        if not 0 <= kill_after <= self._granted.ttl / 3:
            raise InvalidRequest("invalid_request", "Use a kill_after of at most a third of the ttl.")
        self.check()
        own = {"PADDOCK_LOCK": self.name, "PADDOCK_FENCING_TOKEN": str(self.token), "PADDOCK_URL": self._paddock.base_url,
               "PADDOCK_LOCKS": " ".join(self.tokens), "PADDOCK_FENCING_TOKENS": _pairs(self.tokens), "PADDOCK_SLOTS": _pairs(self.slots),
               "PADDOCK_LEASE_HOLDER": self._granted.answer["holder"], "PADDOCK_SLOT": str(self.slot or ""),
               "PADDOCK_TASK": self.task_id, "PADDOCK_LEASE_ID": "", "PADDOCK_EXPIRES_AT": ""}  # empty: removed; may be of another lease
        env = {key: value for key, value in {**(popen.pop("env", None) or os.environ), **own}.items() if own.get(key) != ""}
        clock, early = self._paddock.clock, max(kill_after - self._margin / 2, 0.0)
        children: List[subprocess.Popen[Any]] = []
        try:
            # A KeyboardInterrupt does not reach the other thread, and the end of the with waits for it: no child is
            # missed.
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
            self._lose(self._overdue())
            self._raise_loss()
        return child.returncode

    def _check_deadline(self) -> float:
        if self._session is not None and self._session._check_deadline() <= 0:
            self._lose(self._session._loss_of_lease())
        return super()._check_deadline()

    def _lose(self, why: PaddockError) -> None:
        super()._lose(why)
        if self._session is not None:
            self._session._leases.pop(self._granted.lease_id, None)

    def _notify_in_thread(self) -> None:
        if (self._on_lost or self._on_state or self._interrupt_main) and not self._has_thread:
            threading.Thread(target=self._notify_loss, name="paddock lease", daemon=True).start()

    def _send_renewal(self, timeout: float) -> Grant:
        return self._paddock.renew(self._locks, self._granted.lease_id, timeout=timeout)

    def _send_release(self, timeout: float) -> None:
        self._paddock.release(self._locks, self._granted.lease_id, timeout=timeout)


def _pairs(numbers: Mapping[str, int]) -> str:
    return " ".join(f"{name}={number}" for name, number in numbers.items() if number)


def _max_hold_end(grant: Grant) -> float:
    """Returns when the lease of a session ends by its max_hold, on the Paddock's clock."""
    if grant.answer.get("max_hold_ms") is None:
        return math.inf
    acquired, expires = _instant(grant.answer["acquired_at"]), _instant(grant.answer["expires_at"])
    return grant.until + acquired + grant.answer["max_hold_ms"] / 1000 - expires  # which may be the end of the session


def _instant(text: str) -> float:
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")) + float(f"0{text[19:-1]}")


class Session(_Renewed):
    """A session that is renewed in the background, from Paddock.hold_session. Pass it to Paddock.hold to acquire leases in
    it. A with statement closes it at its end, and raises SessionLost if it was lost. Its leases are lost when it is lost or
    closed, at once: those still held at the end of the block, too. lost, deadline and error are like those of a Lease. It is
    renewed while there is a reference to it or to one of its leases, which it keeps."""

    _LOST = SessionLost
    _OVERDUE = "The session was not renewed in time. Stop all of its work; to continue, open a new one."
    _ENDED = "The session was closed; no work may continue in it."
    _DROPPED = "the session was dropped without a close"

    def __init__(self, paddock: Paddock, grant: SessionGrant, margin: float, on_state: Optional[Callable[..., object]],
                 on_lost: Optional[Callable[..., object]], interrupt_main: bool, on_renewed: Optional[Callable[..., object]],
                 holder: Optional[str] = None) -> None:
        self.id: str = grant.session_id  # a secret
        self.ref: str = grant.ref  # the public name
        self._holder = holder  # of its leases, unless they have their own
        self._leases: Dict[str, Lease] = {}  # by lease_id, until they end
        self._lost_leases: List[Lease] = []  # of which the callbacks were not called yet
        self._revoked: int = grant.answer["revoked_leases"]  # in the last answer
        super().__init__(f"session {grant.ref}", paddock, grant, margin, on_state, on_lost, interrupt_main, on_renewed)
        self._start()

    def close(self, timeout: float = 5.0) -> None:
        """Closes the session, which releases all of its leases; may be repeated. Stop their work before. Raises SessionLost
        if it was lost: the work may have overlapped. If the service does not respond, retries for timeout seconds, then
        raises Unavailable or UnknownOutcome: the session is no longer renewed and ends with its TTL."""
        self._end(timeout)

    def _want(self, paddock: Paddock, want: Json, margin: Optional[float]) -> Json:
        """Returns the arguments of an acquire in this session."""
        if paddock is not self._paddock:
            raise InvalidRequest("invalid_request", "The session belongs to another Paddock; call hold of that one.")
        if any(value is not None for value in (want["ttl"], want["grace"], margin)):
            raise InvalidRequest("invalid_request", "ttl, grace and margin are those of the session; leave them out.")
        return {**want, "session_id": self.id, "holder": want["holder"] or self._holder}

    def _join(self, lease: Lease) -> None:
        self._leases[lease._granted.lease_id] = lease
        if self._losses and self._leases.pop(lease._granted.lease_id, None):  # else _lose has taken it
            lease._lose(self._loss_of_lease())
            lease._notify_in_thread()

    def _loss_of_lease(self) -> PaddockError:
        why = self._losses[0]
        loss = LeaseLost("lease_lost", f"The lease ended with its session. {why.detail}", why.status, why.fields)
        loss.__cause__ = why
        return loss

    def _lose(self, why: PaddockError) -> None:
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

    def _send_renewal(self, timeout: float) -> SessionGrant:
        grant = self._paddock.renew_session(self.id, timeout=timeout)
        self._revoked = grant.answer["revoked_leases"]
        suspects = [lease for lease in list(self._leases.values()) if lease._held_at < self._revoked]
        if suspects:
            threading.Thread(target=self._find_lost, args=(suspects, self._revoked), name="paddock session", daemon=True).start()
        return grant

    def _find_lost(self, suspects: List[Lease], revoked: int) -> None:
        """Asks for each lease whether it has ended: an operator has revoked some. Of several locks, which end together, it
        asks for the first: while that is held, the answer is lease_in_set."""
        for start in range(0, len(suspects), MAX_BATCH):
            chunk = suspects[start:start + MAX_BATCH]
            items = [{"op": "renew", "name": lease.name, "lease_id": lease._granted.lease_id} for lease in chunk]
            try:
                answer = self._paddock._call("POST", "/v1/batch", {"items": items}, changes=True, has=("results",))
            except PaddockError as e:  # the next renewal tries again
                _log.debug("%s: cannot find out which lease has ended: %s", self._label, e)
                return
            for lease, result in zip(chunk, answer["results"]):
                problem = result.get("problem") or {}
                if result["status"] == 200 or problem.get("code") == "lease_in_set":
                    lease._held_at = revoked
                elif problem.get("code") == "lease_lost" and self._leases.pop(lease._granted.lease_id, None):
                    lease._lose(LeaseLost("lease_lost", str(problem.get("detail")), result["status"], problem))
                    lease._notify_in_thread()

    def _send_release(self, timeout: float) -> None:
        self._paddock.close_session(self.id, timeout=timeout)


def _call(name: str, listener: Optional[Callable[..., object]], *args: object) -> None:
    try:
        if listener:
            listener(*args)
    except Exception:
        _log.exception("%s: a callback failed", name)


def _warn_dropped(label: str, dropped: str, lost: threading.Event) -> None:
    if not lost.is_set():
        _log.warning("%s: %s; it is no longer renewed and ends with its TTL", label, dropped)
        lost.set()


def _run_steps(ref: weakref.ref[_Renewed], ended: threading.Event, step: str, last: str) -> None:
    """Runs step, which returns the next pause, until the lease or session ends or has no reference; then runs last."""
    pause = 0.0
    while not ended.wait(pause):
        renewed = ref()
        if renewed is None:
            return
        pause = getattr(renewed, step)()
        del renewed  # a waiting thread must not keep it alive
    renewed = ref()
    if renewed is not None and last:
        getattr(renewed, last)()


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
