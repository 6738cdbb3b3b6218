"""Paddock: locks whose leases carry fencing tokens, over HTTP.

    from paddock import LockHeld, Paddock

    paddock = Paddock("http://127.0.0.1:8080")
    try:
        with paddock.hold("jobs:nightly", ttl=30) as lease:
            for row in rows:
                lease.check()            # raises LeaseLost in time
                write(row, lease.token)  # and the token is checked where the write lands
    except LockHeld as held:
        print(f"{held.holder} does it")

One file, standard library only, Python 3.9 or newer: install it or copy it. Durations are in seconds. A
Paddock may be used by many threads. Its methods are one request each; hold is the guard that stands on them.

What the guard does. It acquires under a lease_id of its own choice and sends the same acquire again when an
answer is lost, so nothing is left behind. It waits in the queue over as many calls as that takes, at one
place. One thread renews the lease each third of its TTL or a little sooner; another watches the clock, whatever
the network is up to. The deadline is what was left when the last request was sent that was granted, less a margin.

    held      the last renewal succeeded
    at_risk   a renewal has failed and is tried again; an outage is no loss: the work goes on until the deadline
    lost      the service said lease_lost, or the deadline has come: stop the work. It stays lost
    released  the lease was given up

What is not given. Python cannot stop a thread, so the work has to look: at check() or the event lost; or it is a
child process (run), or interrupted in the main thread (interrupt_main). Between a look and a write there is a gap
that no client can close; the token does, where the write lands. Another hold of the same name is another lease. After
a fork the child has no renewal: check() passes until the deadline known at the fork, and release() does nothing.
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
LONGEST_MARGIN = 5.0  # that is taken unasked
WAIT_A_CALL = 25.0  # the service allows 50, proxies often 60
LEAVE_WITHIN = 2.0  # how long one try of a release may take
TICK = 1.0  # the longest wait of a thread, for a suspension of the machine does not count in one
POLL = 0.05  # how often a child process is looked at
MAX_ANSWER = 16 << 20  # bytes
MAX_IDLE, IDLE_FOR = 32, 50.0  # how many connections are kept, and for how long
_log = logging.getLogger("paddock")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")
_NOTHING_DONE = "Nothing was changed; try again."
_MAYBE_DONE = "It may or may not have been done; send the same call again to find out, and do not take the lease for lost."
# The statuses with which something in front of the service turns a request down before it hands it on.
_REFUSED_AHEAD = frozenset({401, 403, 404, 405, 413, 415, 429, 431})

Json = Dict[str, Any]


class PaddockError(Exception):
    """A refusal, or a call that came to nothing. Branch on its class or its code, which is stable; detail says what
    happened and what to do next; status is that of HTTP, None if nobody answered; fields has the members of the
    problem document. The cause is what the network said."""

    def __init__(self, code: str, detail: str, status: Optional[int] = None, fields: Optional[Json] = None) -> None:
        super().__init__(code, detail, status, fields)
        self.code, self.detail, self.status, self.fields = code, detail, status, fields or {}

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    @property
    def holder(self) -> Optional[str]:
        """Who has the lock, where the code tells it."""
        return self.fields.get("holder")

    @property
    def retry_after(self) -> float:
        """When to try again, in seconds from now; zero if nobody said."""
        return float(self.fields.get("retry_after_ms") or 0) / 1000

    @property
    def transient(self) -> bool:
        """Whether it was no refusal, and the same call may succeed later."""
        return self.status == 429 or (self.status or 0) >= 500 or isinstance(self, (Unavailable, UnknownOutcome))


class InvalidRequest(PaddockError, ValueError):
    """A bound is broken; detail says which."""


class LockHeld(PaddockError):
    """Somebody else has the lock: see holder and retry_after."""


class LeaseLost(PaddockError):
    """The lease has ended, or is about to: stop the work. fields["ended"] says how, where that is known."""


class StaleToken(PaddockError):
    """A greater token has been granted or seen: the lease is gone, stop the work."""


class NotAllowed(PaddockError):
    """The API key is missing, none that the service knows or over (status 401), or does not allow this (403): code says
    which. Another key is needed. It does not mean that a lease is lost."""


class Unavailable(PaddockError):
    """Not now, and nothing was changed; try again. It does not mean that a lease is lost."""


class UnknownOutcome(PaddockError):
    """It may or may not have been done; the same call again finds out. It does not mean that a lease is lost."""


_CLASSES: Mapping[str, Type[PaddockError]] = {
    "invalid_request": InvalidRequest, "lock_held": LockHeld, "lease_lost": LeaseLost, "stale_token": StaleToken,
    "key_missing": NotAllowed, "key_invalid": NotAllowed, "key_expired": NotAllowed, "role_missing": NotAllowed, "name_not_allowed": NotAllowed,
    "unavailable": Unavailable, "unknown_outcome": UnknownOutcome, "internal": PaddockError,
}


class SuspendClock:
    """Seconds that go on while the machine is suspended, for systems without a clock that does so.

    Of the monotonic clock and the wall clock it takes the one that went farther since it was last asked.
    A wall clock that is put forward may cost a lease; one that is put back changes nothing.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._clocks, self._seen, self._now = (monotonic, wall), (monotonic(), wall()), 0.0
        self._lock = threading.RLock()  # a signal's handler may ask, too

    def __call__(self) -> float:
        with self._lock:
            before, self._seen = self._seen, (self._clocks[0](), self._clocks[1]())
            self._now += max(self._seen[0] - before[0], self._seen[1] - before[1])
            return self._now


class _Wire:
    """HTTP over connections that are kept. It follows no redirect, as a lease_id must not travel to another host,
    and uses no proxy that the environment names."""

    def __init__(self, base_url: str, headers: Mapping[str, str], tls: Optional[ssl.SSLContext]) -> None:
        url = urllib.parse.urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc or url.query or url.fragment:
            raise ValueError("the base URL must be http://HOST or https://HOST, with a port or a path if need be; "
                             "without query or fragment, and without a user: an API key is given as key, other credentials in headers")
        connection: Any = http.client.HTTPConnection
        if url.scheme == "https":
            connection = functools.partial(http.client.HTTPSConnection, context=tls or ssl.create_default_context())
        self._connection = functools.partial(connection, url.hostname, url.port or (443 if url.scheme == "https" else 80))
        self._prefix = urllib.parse.quote(url.path.rstrip("/"), safe="/%")
        self._headers = {"User-Agent": f"paddock-python/{__version__}", **headers}
        self._idle: List[Tuple[int, float, http.client.HTTPConnection]] = []

    def exchange(self, method: str, path: str, body: Optional[bytes], timeout: float) -> Tuple[http.client.HTTPResponse, bytes]:
        """One request and its answer. Raises Unavailable if nothing was sent, else OSError or HTTPException."""
        connection = self._ready(timeout)
        try:
            connection.sock.settimeout(timeout)
            headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
            connection.request(method, self._prefix + path, body, headers)
            response = connection.getresponse()
            content = response.read() if (response.length or MAX_ANSWER) < MAX_ANSWER else response.read(MAX_ANSWER)
        except BaseException:
            connection.close()
            raise
        if response.isclosed() and connection.sock is not None and len(self._idle) < MAX_IDLE:
            self._idle.append((os.getpid(), time.monotonic(), connection))
        else:
            connection.close()
        return response, content

    def _ready(self, timeout: float) -> Any:
        """A kept connection that is good, or a new one."""
        with contextlib.suppress(IndexError):
            while True:
                owner, since, connection = self._idle.pop()
                if owner == os.getpid() and time.monotonic() - since < IDLE_FOR and _is_quiet(connection.sock):
                    return connection
                connection.close()
        connection = self._connection(timeout=timeout)
        try:
            connection.connect()
        except OSError as e:
            raise Unavailable("unavailable", f"The request was not sent: {e}. {_NOTHING_DONE}") from e
        return connection

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[2].close()


def _authorization(key: Optional[str], headers: Mapping[str, str]) -> Mapping[str, str]:
    """The header that a key is sent in, if there is one. Errors do not repeat the key."""
    if key is None:
        return {}
    if not re.fullmatch("[!-~]+", key):
        raise ValueError("the key has a character that no API key has, or none at all: give it as it was given to you, without what is around it")
    if any(name.lower() == "authorization" for name in headers):
        raise ValueError("there is a key and a header Authorization: give one of the two")
    return {"Authorization": f"Bearer {key}"}


def _is_quiet(sock: socket.socket) -> bool:
    """Whether nothing has come on a kept connection, not its end either."""
    try:
        sock.setblocking(False)
        socket.socket.recv(sock, 1, socket.MSG_PEEK)  # below TLS, which does not peek
    except OSError as e:
        return isinstance(e, BlockingIOError)
    return False


def _decode(response: http.client.HTTPResponse, content: bytes, content_type: str) -> Json:
    """The JSON object that an answer of that type has; empty if it has none."""
    try:
        value = json.loads(content) if response.headers.get_content_type() == content_type else {}
    except ValueError:
        value = {}
    return value if isinstance(value, dict) else {}


def _refusal(response: http.client.HTTPResponse, content: bytes, changes: bool) -> PaddockError:
    """The error that an answer stands for: what its problem document says if it is one of Paddock's. Of what
    others say nothing is repeated, since it may echo the request."""
    status, problem = response.status, _decode(response, content, "application/problem+json")
    seconds = response.headers.get("Retry-After", "")
    problem.setdefault("retry_after_ms", int(seconds) * 1000 if re.fullmatch("[0-9]{1,6}", seconds) else 0)
    code = problem.get("code")
    if isinstance(code, str) and (status < 500 or code in _CLASSES):
        return _CLASSES.get(code, PaddockError)(code, str(problem.get("detail") or problem.get("title")), status, problem)
    what = (f"The answer, HTTP {status} with content type {response.headers.get_content_type()!r}, is none of Paddock's: "
            "a proxy on the way gave it, or the base URL is that of another server. ")
    if status // 100 == 3:
        what += "Redirects are not followed: give the final address as base URL. "
    fields = {"retry_after_ms": problem["retry_after_ms"]}
    if changes and status not in _REFUSED_AHEAD:
        return UnknownOutcome("unknown_outcome", what + _MAYBE_DONE, status, fields)
    return Unavailable("unavailable", what + _NOTHING_DONE, status, fields)


def _ms(seconds: Optional[float]) -> Optional[int]:
    """Whole milliseconds; of less than one it makes one, not none."""
    if seconds is None:
        return None
    if not math.isfinite(seconds):
        raise InvalidRequest("invalid_request", f"A duration is {seconds}; give seconds.")
    return max(round(seconds * 1000), 1) if seconds > 0 else round(seconds * 1000)


def _given(**members: Any) -> Json:
    return {key: value for key, value in members.items() if value is not None}


def _path(prefix: str, name: str, verb: str = "") -> str:
    if not _NAME.fullmatch(name):
        raise InvalidRequest("invalid_request", f"{name!r} cannot be a name; give 1 to 200 of A-Z a-z 0-9 . _ : @ -")
    return f"{prefix}/{urllib.parse.quote(name, safe='')}{verb}"


@dataclass(frozen=True)
class Grant:
    """A lease as an answer tells of it; answer is all of that."""

    name: str
    lease_id: str = field(repr=False)  # the secret that proves it
    token: int
    slot: int
    ttl: float
    expires_in: float  # counted from sent
    sent: float  # the instant on the Paddock's clock before anything of the request was sent
    answer: Json = field(repr=False, compare=False)

    @property
    def until(self) -> float:
        """The instant on the Paddock's clock from which on the lease may be over. It leaves no margin."""
        return self.sent + self.expires_in


class Paddock:
    """A Paddock service. Every method but hold is one request, sent once: nothing retries or renews. timeout bounds each
    step of a call: to connect, to send, to wait for the answer beyond what was asked. key is the API key, which begins with
    pk_, where the service asks for one; no error has it. headers go along with each call; tls is for certificates of your own; clock is for tests, and goes on while the machine
    is suspended. Raises ValueError for a base_url or a key that cannot be. Sends nothing."""

    def __init__(self, base_url: str, *, key: Optional[str] = None, timeout: float = 10.0, headers: Optional[Mapping[str, str]] = None,
                 tls: Optional[ssl.SSLContext] = None, clock: Optional[Callable[[], float]] = None) -> None:
        boot = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else None
        self.base_url, self.timeout, self.clock = base_url, timeout, clock or boot or SuspendClock()
        self._wire = _Wire(base_url, {**(headers or {}), **_authorization(key, headers or {})}, tls)

    def close(self) -> None:
        """Closes the connections that are kept. The Paddock may be used on."""
        self._wire.close()

    def acquire(self, name: str, *, lease_id: Optional[str] = None, wait: float = 0.0, keep_place: bool = False,
                timeout: Optional[float] = None, holder: Optional[str] = None, ttl: Optional[float] = None,
                mode: str = "exclusive", capacity: Optional[int] = None, grace: Optional[float] = None,
                max_hold: Optional[float] = None, metadata: Optional[Json] = None) -> Grant:
        """Takes the lock, or raises LockHeld once wait, 50 at most, is over.

        Choose the lease_id yourself, a random UUID, to be able to send the call again after UnknownOutcome. Of a
        grant that was waited for expires_in, which counts from sent, may be over already: renew at once.
        """
        body = _given(lease_id=lease_id or str(uuid.uuid4()), holder=holder or f"{socket.gethostname()}:{os.getpid()}",
                      wait_ms=_ms(wait), keep_place=keep_place or None, ttl_ms=_ms(ttl), mode=mode, capacity=capacity,
                      grace_ms=_ms(grace), max_hold_ms=_ms(max_hold), metadata=metadata)
        return self._grant(name, "/acquire", body, self.timeout + wait if timeout is None else timeout)

    def renew(self, name: str, lease_id: str, *, ttl: Optional[float] = None, metadata: Optional[Json] = None,
              timeout: Optional[float] = None) -> Grant:
        """Moves the lease's end to a TTL from now, or raises LeaseLost. What is not given stays as it is."""
        return self._grant(name, "/renew", _given(lease_id=lease_id, ttl_ms=_ms(ttl), metadata=metadata), timeout)

    def release(self, name: str, lease_id: str, *, timeout: Optional[float] = None) -> None:
        """Gives the lease up, or the place in the queue; again is fine. Raises LeaseLost if it ended otherwise."""
        self._call("POST", _path("/v1/locks", name, "/release"), _given(lease_id=lease_id), changes=True, timeout=timeout)

    def revoke(self, name: str, *, token: int, reason: str, slot: Optional[int] = None,
               acquired_at: Optional[str] = None, skip_grace: bool = False) -> Json:
        """Takes the lease with that token away and returns the lock as it is then; token_mismatch if it has none.

        The lease's grace keeps others out before they are granted the lock, unless skip_grace is true.
        """
        body = _given(fencing_token=token, reason=reason, slot=slot, acquired_at=acquired_at, skip_grace=skip_grace or None)
        return self._call("POST", _path("/v1/locks", name, "/revoke"), body, changes=True, has=("state",), name=name)

    def lock(self, name: str) -> Json:
        """The lock as it is now. One that was never used is free."""
        return self._call("GET", _path("/v1/locks", name), has=("state",), name=name)

    def queue(self, name: str) -> Json:
        """Who waits for the lock, in the order in which they are served, and for what."""
        return self._call("GET", _path("/v1/locks", name, "/queue"), has=("waiters",), name=name)

    def locks(self, *, prefix: Optional[str] = None, state: Optional[str] = None, holder: Optional[str] = None,
              limit: Optional[int] = None, cursor: Optional[str] = None) -> Json:
        """A page of the locks known, in the order of their names; the last has no next_cursor."""
        query = urllib.parse.urlencode(_given(prefix=prefix, state=state, holder=holder, limit=limit, cursor=cursor))
        return self._call("GET", f"/v1/locks?{query}", has=("locks",))

    def events(self, *, lock: Optional[str] = None, prefix: Optional[str] = None, limit: Optional[int] = None,
               cursor: Optional[str] = None, wait: float = 0.0) -> Json:
        """A page of what happened, oldest first; its next_cursor asks for what comes after. Waits while there is nothing."""
        query = urllib.parse.urlencode(_given(lock=lock, prefix=prefix, limit=limit, cursor=cursor, wait_ms=_ms(wait)))
        return self._call("GET", f"/v1/events?{query}", timeout=self.timeout + wait, has=("events", "next_cursor"))

    def verify_token(self, name: str, token: int, *, slot: Optional[int] = None) -> Json:
        """How a token stands, true of the instant checked_at. Only a check in the transaction that writes is more."""
        body = _given(name=name, fencing_token=token, slot=slot)
        return self._call("POST", "/v1/tokens/verify", body, has=("status", "current"), name=name)

    def write_fenced(self, key: str, *, lock: str, token: int, value: Any, slot: Optional[int] = None,
                     if_version: Optional[int] = None) -> Json:
        """Writes value, any JSON, under the token; StaleToken, or the codes unknown_token and version_mismatch, if not."""
        body = {**_given(lock=lock, fencing_token=token, slot=slot, if_version=if_version), "value": value}
        return self._call("PUT", _path("/v1/fenced", key), body, changes=True, has=("version",), key=key)

    def read_fenced(self, key: str) -> Json:
        """What was written under the key; the code not_found if nothing was."""
        return self._call("GET", _path("/v1/fenced", key), has=("version",), key=key)

    def hold(self, name: str, *, ttl: float = 30.0, wait: Optional[float] = 0.0, retry: float = 10.0,
             margin: Optional[float] = None, on_state: Optional[Callable[[str, Optional[Exception]], object]] = None,
             on_lost: Optional[Callable[[LeaseLost], object]] = None, interrupt_main: bool = False,
             holder: Optional[str] = None, mode: str = "exclusive", capacity: Optional[int] = None,
             grace: Optional[float] = None, max_hold: Optional[float] = None, metadata: Optional[Json] = None) -> Lease:
        """Acquires the lock and keeps its lease alive until it is released. Use it in a with statement.

        wait      for how long to wait in the queue: 0 to try only, None for as long as it takes; then LockHeld
        retry     for how long to go on while the service cannot be reached, or wait if that is longer; then Unavailable
        margin    how long before its end the lease counts as lost: what the work takes to stop, a third of ttl at
                  most; if not given a tenth, 5 seconds at most
        on_state  is told of held, at_risk and lost, with the error that led there. Renewals wait for it
        on_lost   is told of the loss, from another thread
        interrupt_main  on loss, raise KeyboardInterrupt in the main thread while that is in the with block, which
                  makes LeaseLost of it. From the main thread, on POSIX; SIGURG is used for it

        Whatever ends the wait, KeyboardInterrupt too, gives up the place, and a lease that came meanwhile.
        """
        margin = min(ttl / 10, LONGEST_MARGIN) if margin is None else margin
        if not 0 < ttl < math.inf or not 0 < margin <= ttl / 3 or not (wait or 0) >= 0:
            raise InvalidRequest("invalid_request", "Give a ttl above 0, a margin of at most a third of it, a wait from 0 on.")
        if interrupt_main and (threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGURG")):
            raise InvalidRequest("invalid_request", "interrupt_main is for the main thread, on POSIX; look at lost instead.")
        want = {"holder": holder, "ttl": ttl, "mode": mode, "capacity": capacity, "grace": grace, "max_hold": max_hold,
                "metadata": metadata}
        grant = _obtain(self, name, want, margin, math.inf if wait is None else wait, retry)
        try:
            return Lease(self, grant, margin, on_state, on_lost, interrupt_main)
        except BaseException:
            _give_up(self, name, grant.lease_id)
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
            response, content = self._wire.exchange(method, path, sent, self.timeout if timeout is None else timeout)
        except (OSError, http.client.HTTPException) as e:
            if changes:
                raise UnknownOutcome("unknown_outcome", f"The answer was lost on the way. {_MAYBE_DONE}") from e
            raise Unavailable("unavailable", f"The answer was lost on the way. {_NOTHING_DONE}") from e
        if response.status == 204 and not has:
            return {}
        answer = _decode(response, content, "application/json") if response.status in (200, 201) else {}
        if not has or not all(key in answer for key in has) or any(answer.get(key) != same[key] for key in same):
            raise _refusal(response, content, changes)
        return answer


def _pauses(first: float, longest: float) -> Iterator[float]:
    while True:
        yield random.uniform(first / 2, first)
        first = min(first * 2, longest)


def _obtain(paddock: Paddock, name: str, want: Json, margin: float, wait: float, retry: float) -> Grant:
    """A lease that is good for some time from now."""
    clock, lease_id, pauses = paddock.clock, str(uuid.uuid4()), _pauses(0.1, 2.0)
    wait_until, retry_until = clock() + wait, clock() + max(wait, retry)
    try:
        while True:
            left = max(wait_until - clock(), 0.0)
            try:
                ask: Json = {**want, "lease_id": lease_id, "wait": min(left, WAIT_A_CALL), "keep_place": left > WAIT_A_CALL}
                grant = paddock.acquire(name, **ask)
                if clock() > grant.sent + margin:  # it was waited for, or slow on its way
                    grant = paddock.renew(name, lease_id)
                if clock() < grant.until - margin:
                    return grant
                error: PaddockError = Unavailable("unavailable", "The answers are too slow for this ttl; give a longer one.")
            except LeaseLost as e:  # before anybody was told of it: nothing was done under that lease
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
            _give_up(paddock, name, lease_id)
        raise


def _give_up(paddock: Paddock, name: str, lease_id: str) -> None:
    """Gives up what nobody will use. If that fails, the place is kept for seconds only, and a lease ends with its TTL."""
    try:
        paddock.release(name, lease_id, timeout=LEAVE_WITHIN)
    except PaddockError as e:
        _log.debug("giving up %s: %s", name, e)


class Lease:
    """A lease that is kept alive, from Paddock.hold. A with statement releases it at its end, and raises LeaseLost if
    it was lost: the work may have overlapped with somebody else's.

    name, token and slot are those of the grant. lost is an event, set when the lease is lost and when it is released:
    nobody may work under it any longer. deadline is an instant on the Paddock's clock. error is why the lease is
    at risk or lost. A lease that nobody refers to any more is not renewed any more.
    """

    def __init__(self, paddock: Paddock, grant: Grant, margin: float, on_state: Optional[Callable[..., object]],
                 on_lost: Optional[Callable[..., object]], interrupt_main: bool) -> None:
        self.name, self.token, self.slot, self.lost = grant.name, grant.token, grant.slot, threading.Event()
        self._paddock, self._margin, self._on_state, self._on_lost = paddock, margin, on_state, on_lost
        self._ends: List[LeaseLost] = []  # the first counts; no lock, since signals and forks come at any time
        self._given_up = LeaseLost("lease_lost", "The lease was released; nobody may work under it any longer.")
        self._trouble: Optional[Exception] = None
        self._pid, self._settled, self._telling = os.getpid(), False, threading.RLock()
        self._interrupts, self._armed = interrupt_main, False
        self._take(grant)
        weakref.finalize(self, _dropped, self.name, self.lost).atexit = False
        for step, last in (Lease._look, Lease._tell_loss), (Lease._renew, None):
            threading.Thread(target=_work, args=(weakref.ref(self), self.lost, step, last), name="paddock lease", daemon=True).start()

    @property
    def state(self) -> str:
        """held, at_risk, lost or released."""
        if self._ends:
            return RELEASED if self._ends[0] is self._given_up else LOST
        return AT_RISK if self._trouble else HELD

    @property
    def error(self) -> Optional[Exception]:
        return self._ends[0] if self._ends else self._trouble

    def remaining(self) -> float:
        """How many seconds are left until the deadline; 0 when the lease is lost or released. Exact when asked."""
        return 0.0 if self._ends else max(self.deadline - self._paddock.clock(), 0.0)

    def check(self) -> None:
        """Raises LeaseLost if the lease is lost or released, or the deadline has come by now."""
        if self._look() <= 0:
            raise LeaseLost(*self._ends[0].args)

    def release(self, timeout: float = 5.0) -> None:
        """Gives the lease up; again is fine. Raises LeaseLost if it was lost, so that the work may have overlapped.
        While the service does not answer, asks again for timeout seconds; then raises Unavailable or UnknownOutcome:
        the lease is not renewed any more, and ends with its TTL."""
        if os.getpid() != self._pid:
            return
        clock, pauses = self._paddock.clock, _pauses(0.05, 1.0)
        until = clock() + timeout
        self._look()
        self._end(self._given_up)
        while not self._settled:
            try:
                self._paddock.release(self.name, self._grant.lease_id, timeout=min(max(until - clock(), 0.1), LEAVE_WITHIN))
            except LeaseLost as e:
                self._settled = True
                if self.state == LOST or e.fields.get("ended") != "expired" or clock() < self.deadline:
                    raise  # else it ended between the work's end and now
            except PaddockError as e:
                if self.state == RELEASED:
                    if not e.transient or clock() >= until:
                        raise
                    time.sleep(min(next(pauses), max(until - clock(), 0.0)))
                    continue
            self._settled = True
            if self.state == LOST:
                raise LeaseLost(*self._ends[0].args)

    def __enter__(self) -> Lease:
        if self._interrupts:
            self._handler, self._armed = signal.signal(signal.SIGURG, self._interrupt), True
            if self.lost.is_set():  # so early that nobody interrupts any more
                self.__exit__(None, None, None)
        return self

    def __exit__(self, _: Optional[Type[BaseException]], error: Optional[BaseException], __: Optional[TracebackType]) -> None:
        armed, self._armed = self._armed, False
        if self._interrupts:
            signal.signal(signal.SIGURG, self._handler or signal.SIG_DFL)
        try:
            self.release()
        except LeaseLost as lost:
            if error is None or (self._interrupts and not armed and isinstance(error, KeyboardInterrupt)):
                raise
            if not isinstance(error, LeaseLost):
                _log.warning("%s: the work ended with %r, and may have overlapped: %s", self.name, error, lost)
        except PaddockError as e:
            _log.warning("%s: the lease is not released, and ends with its TTL: %s", self.name, e)

    def run(self, argv: Sequence[str], *, kill_after: Optional[float] = None, **popen: Any) -> int:
        """Runs a child process under the lease and returns its exit code, -N if signal N killed it.

        The child leads a process group, which gets SIGTERM in time and SIGKILL kill_after seconds later, before the lease
        can be somebody else's; both at once if it has ended already. Then LeaseLost is raised. kill_after is half the
        margin if not given, a third of the ttl at most. What is left of the group when the child ends, or an exception
        comes, is stopped in the same way; what has left the group is not. The child finds PADDOCK_LOCK, _FENCING_TOKEN,
        _HOLDER, _URL and, where there is one, _SLOT in its environment. popen goes to subprocess.Popen. If this process is
        killed the child goes on, unguarded. POSIX only.
        """
        kill_after = self._margin / 2 if kill_after is None else kill_after
        if not 0 <= kill_after <= self._grant.ttl / 3:
            raise InvalidRequest("invalid_request", "Give a kill_after of a third of the ttl at most.")
        self.check()
        told = {"PADDOCK_LOCK": self.name, "PADDOCK_FENCING_TOKEN": str(self.token), "PADDOCK_URL": self._paddock.base_url,
                "PADDOCK_HOLDER": self._grant.answer["holder"], "PADDOCK_SLOT": str(self.slot or ""),
                "PADDOCK_LEASE_ID": "", "PADDOCK_EXPIRES_AT": ""}  # what is empty here may be set for another lease
        env = {key: value for key, value in {**(popen.pop("env", None) or os.environ), **told}.items() if told.get(key) != ""}
        clock, early = self._paddock.clock, max(kill_after - self._margin / 2, 0.0)
        with ThreadPoolExecutor(1) as pool:  # where no KeyboardInterrupt comes between the child's birth and the try
            birth = pool.submit(subprocess.Popen, argv, env=env, start_new_session=True, **popen)
            try:
                child = birth.result()
                while child.poll() is None and self.remaining() > early:
                    self.lost.wait(POLL)
                overdue = child.returncode is None
            finally:
                if birth.exception() is None:
                    ended = self.state == LOST and clock() < self.deadline  # and maybe somebody else has the lock
                    until = min(clock() + (0 if ended else kill_after), self.deadline + self._margin / 2)
                    _stop(birth.result(), clock, until)
        if overdue:
            self._end(_overdue())
            raise LeaseLost(*self._ends[0].args)
        return child.returncode

    def _look(self) -> float:
        """Ends the lease if its deadline has come; returns how long to wait then."""
        left = self.remaining()
        if left <= 0:
            self._end(_overdue())
        return min(left, TICK)

    def _take(self, grant: Grant) -> None:
        self._grant, self._trouble, self._pauses = grant, None, _pauses(grant.ttl / 60, grant.ttl / 12)
        self.deadline = grant.until - self._margin
        self._due = grant.sent + min(grant.ttl, grant.expires_in) / 3 * random.uniform(0.85, 1)

    def _renew(self) -> float:
        """Renews the lease if it is time to; returns how long to wait then."""
        early = self._due - self._paddock.clock()
        if early > 0:
            return min(early, TICK)
        troubled = self._trouble is not None
        try:
            patience = min(self._paddock.timeout, self._grant.ttl / 6, max(self.remaining(), 0.01))
            grant = self._paddock.renew(self.name, self._grant.lease_id, timeout=patience)
        except LeaseLost as e:
            self._end(e)
        except Exception as e:  # whatever it is, the deadline stands, and until then it is tried again
            self._trouble = e
            pause = max(next(self._pauses), getattr(e, "retry_after", 0.0))
            self._due = self._paddock.clock() + max(min(pause, self.remaining() / 3), 0.01)
            if not troubled:
                self._tell(AT_RISK, self._on_state, AT_RISK, e)
        else:
            if self._look() > 0:  # an answer after the deadline revives nothing
                self._take(grant)
                if troubled:
                    self._tell(HELD, self._on_state, HELD, None)
        return 0.0

    def _end(self, why: LeaseLost) -> None:
        if not self._ends:
            self._ends.append(why)
        if os.getpid() == self._pid:  # after a fork an event's lock may be one that nobody unlocks
            self.lost.set()

    def _tell(self, state: str, listener: Optional[Callable[..., object]], *news: object) -> None:
        """Tells the listener of the state unless it is another by now: in order, though two threads have news."""
        try:
            with self._telling:
                if listener and self.state == state:
                    listener(*news)
        except Exception:
            _log.exception("%s: a callback failed", self.name)

    def _tell_loss(self) -> None:
        self._tell(LOST, self._on_lost, self.error)
        self._tell(LOST, self._on_state, LOST, self.error)
        while self._armed and self.state == LOST:  # until the main thread was interrupted, or has left the block
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGURG)
            time.sleep(POLL)

    def _interrupt(self, number: int, frame: Optional[FrameType]) -> None:
        outside = frame is None or frame.f_code in (Lease.__enter__.__code__, Lease.__exit__.__code__)
        if self._armed and self.state == LOST and not outside:
            self._armed = False
            raise KeyboardInterrupt
        if callable(self._handler):
            self._handler(number, frame)


def _overdue() -> LeaseLost:
    return LeaseLost("lease_lost", "The lease was not renewed in time. Stop the work; to go on, acquire again.")


def _dropped(name: str, lost: threading.Event) -> None:
    if not lost.is_set():
        _log.warning("%s: the lease was dropped without a release; it is not renewed any more and ends with its TTL", name)
        lost.set()


def _work(ref: weakref.ref[Lease], ended: threading.Event, step: Callable[[Lease], float],
          last: Optional[Callable[[Lease], None]]) -> None:
    """Does steps, which say how long to wait then, until the lease ends or nobody has it any more; then the last."""
    pause = 0.0
    while not ended.wait(pause):
        lease = ref()
        if lease is None:
            return
        pause = step(lease)
        del lease  # what waits keeps nothing alive
    lease = ref()
    if lease is not None and last is not None:
        last(lease)


def _stop(child: subprocess.Popen[Any], clock: Callable[[], float], until: float) -> None:
    """Sends SIGTERM to the child's group, and SIGKILL to what is left of it at that instant."""
    try:
        os.killpg(child.pid, signal.SIGTERM)
        while clock() < until:
            child.poll()
            os.killpg(child.pid, 0)
            time.sleep(0.01)
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # nothing is left; macOS says the latter of zombies
        pass
    child.wait()
