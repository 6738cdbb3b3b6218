"""HTTP to one or several replicas of a deployment: kept connections, keys, proxies, and the move to the next address.

A client has a current address. A failure of the address (no connection, a broken one, silence, or an answer 502, 503 or
504) makes the next one current, and the request is sent there at once; each address is tried once. A probe brings an
earlier address back, beside the work.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import ipaddress
import os
import random
import re
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union, cast

from ._clock import Stopped, stopper
from ._errors import UNCHANGED, Unavailable
from ._waits import MIN_WAIT, Waits

VERSION = "1.0.0"
MAX_RESPONSE = 16 << 20  # bytes
MAX_IDLE, IDLE_TIMEOUT = 32, 50.0  # of kept connections
SILENCE = 2.0  # beyond its wait, after which a call that waits is silent, where there is another address
MIN_SHARE = 0.25
MIN_PROBE_PAUSE, MAX_PROBE_PAUSE, PROBE_TIMEOUT = 30.0, 300.0, 1.0
MOVING = frozenset({502, 503, 504})

TLS = Union[ssl.SSLContext, Callable[[], ssl.SSLContext], None]


class NotSent(OSError):
    """There was no connection."""


class Broken(OSError):
    """The answer was lost. The text names each address and what is wrong there, if there are several."""


class WaitCut(Broken):
    """The wait was cut. It is no failure: the rest of it is asked for at once."""


@dataclass
class Request:
    """One request. repeatable says that it may be sent again after a lost answer; streamed, that the caller reads the body."""

    method: str
    path: str
    body: Optional[bytes]
    timeout: float  # beyond the wait, for all addresses together
    wait: float = 0.0
    repeatable: bool = True
    streamed: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Response:
    """A response. A streamed one has its connection, which the caller closes, and its socket, which the connection
    forgets if the answer says so."""

    head: http.client.HTTPResponse
    content: bytes
    connection: Optional[http.client.HTTPConnection] = None
    sock: Optional[socket.socket] = None

    @property
    def status(self) -> int:
        return self.head.status

    @property
    def of_paddock(self) -> bool:
        """Whether a Paddock sent it, whatever its status: not a proxy or a captive portal."""
        return bool(self.head.headers.get("Paddock-Api") == "v1")


class Transport:
    """Sends requests to the current one of the addresses. It follows no redirects, since a lease_id must not reach
    another host."""

    def __init__(self, urls: Sequence[str], headers: Mapping[str, str], tls: TLS, key: Key) -> None:
        if not urls:
            raise ValueError("there is no base URL; pass at least one")
        self._addresses: List[Address] = []
        for number, url in enumerate(urls, 1):
            address = Address(url, "the base URL" if len(urls) == 1 else f"base URL {number} of {len(urls)}", tls)
            for before, other in enumerate(self._addresses, 1):
                if other.url.rstrip("/") == url.rstrip("/"):
                    raise ValueError(f"base URLs {before} and {number} are the same; give each replica's address once")
            self._addresses.append(address)
        self._headers, self._key = {"User-Agent": f"paddock-python/{VERSION}", **headers}, key
        self._current, self._probe_at, self._probe_pause, self._probing = 0, 0.0, MIN_PROBE_PAUSE, threading.Lock()
        self.waits = Waits()

    @property
    def several(self) -> bool:
        return len(self._addresses) > 1

    @property
    def url(self) -> str:
        """The current address."""
        return self._addresses[self._current].url

    def exchange(self, request: Request) -> Response:
        """Sends the request, to each address at most once. Raises Unavailable if nothing was sent, WaitCut or Broken."""
        first, count = self._current, len(self._addresses)
        self._probe()
        tried: List[str] = []
        left, unsure, outcome = request.timeout, None, cast("Union[Response, Exception]", NotSent())
        for n in range(count):
            number, sent = (first + n) % count, time.monotonic()
            address = self._addresses[number]
            try:
                outcome = self._attempt(address, request, self._share(request, left, count - n))
            except (OSError, http.client.HTTPException) as e:
                outcome = e
            if isinstance(outcome, Response) and outcome.status not in MOVING:
                return outcome
            took = time.monotonic() - sent
            waited = request.wait > 0 and took >= MIN_WAIT
            cut = waited and took < request.wait and _is_cut(outcome)
            if not cut or not self.waits.cut(sent, outcome.status if isinstance(outcome, Response) else 0):
                self._failed(number)
            if cut:
                raise WaitCut(f"the wait was cut after {took:.0f} seconds")
            tried.append(f"{address.url}: {_problem(outcome)}")
            if not _changed_nothing(outcome):
                unsure = outcome
                if not request.repeatable:
                    break
            if waited:
                break  # the caller asks for the rest of the wait
            left = max(left - took, 0.0)
        outcome = unsure or outcome  # the last address does not know what the one before has done
        each = "; ".join(tried) if self.several else ""
        if isinstance(outcome, NotSent):
            raise Unavailable("unavailable", f"The request was not sent: {each or outcome}. {UNCHANGED}") from outcome.__cause__
        if isinstance(outcome, Exception):
            raise Broken(each) from outcome
        return outcome

    def _share(self, request: Request, left: float, addresses: int) -> float:
        """Returns the time of an attempt while these many addresses were not tried: a dead one must leave time for the rest."""
        if not self.several:
            return request.wait + request.timeout
        return request.wait + SILENCE if request.wait else max(left / (2 * addresses), MIN_SHARE)

    def _failed(self, number: int) -> None:
        """Makes the next address current, unless another call has done so."""
        if self._current == number:
            if number == 0:
                self._schedule_probe(MIN_PROBE_PAUSE)
            self._current = (number + 1) % len(self._addresses)

    def _schedule_probe(self, pause: float) -> None:
        self._probe_pause, self._probe_at = pause, time.monotonic() + pause * random.uniform(1.0, 1.2)

    def _probe(self) -> None:
        """Asks the earlier addresses whether they are ready, in a thread, if that is due. The first that is becomes current."""
        if self._current and time.monotonic() >= self._probe_at and self._probing.acquire(blocking=False):
            threading.Thread(target=self._ask_earlier, args=(self._addresses[:self._current],), name="paddock probe", daemon=True).start()

    def _ask_earlier(self, earlier: List[Address]) -> None:
        try:
            ready = next((number for number, address in enumerate(earlier) if self._is_ready(address)), len(earlier))
            if ready < min(len(earlier), self._current):
                self._current = ready
                self._schedule_probe(MIN_PROBE_PAUSE)  # of those before it
            else:
                self._schedule_probe(min(2 * self._probe_pause, MAX_PROBE_PAUSE))
        finally:
            self._probing.release()

    def _is_ready(self, address: Address) -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException, Unavailable):
            response = self._attempt(address, Request("GET", "/readyz", None, PROBE_TIMEOUT), PROBE_TIMEOUT)
            return response.status == 200 and response.of_paddock
        return False

    def _attempt(self, address: Address, request: Request, limit: float) -> Response:
        """Sends the request once; again if its key is refused and there is another one meanwhile."""
        key = self._key.read()
        response = self._send(address, request, limit, key)
        again = self._key.read(refused=True) if response.status == 401 and response.of_paddock else key
        return response if again == key else self._send(address, request, limit, again)

    def _send(self, address: Address, request: Request, limit: float, key: str) -> Response:
        stop = stopper.get()
        if stop is not None:
            stop.check()
        until = time.monotonic() + limit
        headers = {**self._headers, **request.headers, **({"Authorization": f"Bearer {key}"} if key else {}),
                   **({} if request.body is None else {"Content-Type": "application/json"})}
        connection = address.connection(limit)
        sock, streamed = connection.sock, False
        try:
            with stop.reads(sock) if stop is not None else contextlib.nullcontext():
                sock.settimeout(max(until - time.monotonic(), 0.01))
                connection.request(request.method, address.target(request.path), request.body, address.headers(headers))
                head = connection.getresponse()
                streamed = request.streamed and head.status == 200
                content = b"" if streamed else head.read() if (head.length or MAX_RESPONSE) < MAX_RESPONSE else head.read(MAX_RESPONSE)
            if streamed:
                return Response(head, b"", connection, sock)
        except BaseException:
            connection.close()
            if stop is not None and stop.stopped:
                raise Stopped from None
            raise
        address.keep(connection, head)
        return Response(head, content)

    def close(self) -> None:
        for address in self._addresses:
            address.close()


def _problem(outcome: Union[Response, Exception]) -> str:
    """Returns what is wrong, without text of the peer, which may echo the request."""
    if isinstance(outcome, Response):
        return f"HTTP {outcome.status}"
    return str(outcome) if isinstance(outcome, OSError) and not isinstance(outcome, http.client.HTTPException) else type(outcome).__name__


def _why_not_connected(e: OSError) -> str:
    """Returns why there is no connection, and for a certificate that is not trusted what to do."""
    if isinstance(e, ssl.SSLCertVerificationError):
        return (f"the certificate of the service is not trusted ({e.verify_message}); pass "
                "tls=ssl.create_default_context(cafile=FILE) with the PEM certificate of its authority, and use a host that "
                "the certificate names")
    return str(e)


def _is_cut(outcome: Union[Response, Exception]) -> bool:
    """Reports whether a proxy gave up, or the connection broke."""
    if isinstance(outcome, Response):
        return outcome.status != 503
    return not isinstance(outcome, (NotSent, TimeoutError, socket.timeout))


def _changed_nothing(outcome: Union[Response, Exception]) -> bool:
    if isinstance(outcome, Response):
        return outcome.status == 503 and outcome.of_paddock and b'"unknown_outcome"' not in outcome.content
    return isinstance(outcome, NotSent)


class Address:
    """One base URL, and the kept connections to it, directly or through the HTTP proxy that the environment names."""

    def __init__(self, url: str, called: str, tls: TLS) -> None:
        self.url: str = url
        self._socket = url[len("unix:"):] if url.startswith("unix:") else None
        if self._socket is not None:
            if not self._socket.startswith("/"):
                raise ValueError(f"{called} is a socket without an absolute path; pass unix:/run/paddock.sock")
            if not hasattr(socket, "AF_UNIX"):
                raise ValueError(f"{called} is a socket in the file system, which Python does not support on this platform")
            url = "http://localhost"
        try:
            parts = urllib.parse.urlsplit(url)
            port = parts.port
        except ValueError:  # whose text repeats the URL
            raise ValueError(f"{called} is not a URL; pass one such as https://locks.example.org") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError(f"{called} must be http://HOST or https://HOST, optionally with a port and a path, without query, "
                             "fragment or user, or a socket such as unix:/run/paddock.sock; pass an API key as key and other "
                             "credentials as headers")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, port or (443 if self._secure else 80)
        context = tls or (ssl.create_default_context() if self._secure else None)
        self._context: Callable[[], Any] = context if callable(context) else lambda: context
        self._proxy = None if self._socket is not None else _proxy_of(parts)
        self._prefix = urllib.parse.quote(parts.path.rstrip("/"), safe="/%")
        self._origin = f"http://{parts.netloc}" if self._proxy and not self._secure else ""
        self._idle: List[Tuple[int, float, http.client.HTTPConnection]] = []
        self._closed = False

    def target(self, path: str) -> str:
        return self._origin + self._prefix + path

    def headers(self, headers: Dict[str, str]) -> Dict[str, str]:
        return {**headers, **self._proxy.headers} if self._proxy and not self._secure else headers

    def connection(self, timeout: float) -> Any:
        """Returns a usable kept connection, or a new one."""
        with contextlib.suppress(IndexError):
            while True:
                owner, since, connection = self._idle.pop()
                if owner == os.getpid() and time.monotonic() - since < IDLE_TIMEOUT and _is_idle(connection.sock):
                    return connection
                connection.close()
        try:
            connection = self._new_connection(timeout)
            connection.connect()
        except OSError as e:
            raise NotSent(_why_not_connected(e)) from e
        return connection

    def _new_connection(self, timeout: float) -> http.client.HTTPConnection:
        if self._socket is not None:
            return _SocketConnection(self._socket, timeout)
        host, port = (self._proxy.host, self._proxy.port) if self._proxy else (self._host, self._port)
        if not self._secure:
            return http.client.HTTPConnection(host, port, timeout=timeout)
        connection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._context())
        if self._proxy:
            connection.set_tunnel(self._host, self._port, self._proxy.headers)
        return connection

    def keep(self, connection: http.client.HTTPConnection, head: http.client.HTTPResponse) -> None:
        if head.isclosed() and connection.sock is not None and len(self._idle) < MAX_IDLE:
            self._idle.append((os.getpid(), time.monotonic(), connection))
        else:
            connection.close()
        if self._closed:  # meanwhile, by another thread, or before
            self.close()

    def close(self) -> None:
        """Closes the kept connections. No more are kept: calls in other threads may end later than the last close."""
        self._closed = True
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop()[2].close()


@dataclass(frozen=True)
class _Proxy:
    host: str
    port: int
    headers: Dict[str, str]


def _proxy_of(url: urllib.parse.SplitResult) -> Optional[_Proxy]:
    """Returns the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY give for the URL; none for this machine."""
    host = url.hostname or ""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return None
    text = urllib.request.getproxies().get(url.scheme)
    if not text or host == "localhost" or urllib.request.proxy_bypass(url.netloc):
        return None
    proxy = urllib.parse.urlsplit(text if "://" in text else f"http://{text}")
    if proxy.scheme != "http" or not proxy.hostname:
        raise ValueError(f"the proxy of the environment for {url.scheme} is not http://HOST:PORT; change it, or except the host in NO_PROXY")
    headers = {}
    if proxy.username is not None:
        user = f"{urllib.parse.unquote(proxy.username)}:{urllib.parse.unquote(proxy.password or '')}"
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    return _Proxy(proxy.hostname, proxy.port or 80, headers)


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


class Key:
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
                    raise Unavailable("unavailable", f"{why} cannot be read: {e}. {UNCHANGED}") from e
        return self._last


def _is_idle(sock: socket.socket) -> bool:
    """Reports whether a kept connection is still open and has no unread data."""
    try:
        sock.setblocking(False)
        socket.socket.recv(sock, 1, socket.MSG_PEEK)  # below TLS, which does not peek
    except OSError as e:
        return isinstance(e, BlockingIOError)
    return False
