"""Iterators that go on for as long as they are used: the events of locks, and the changes of one lock."""

from __future__ import annotations

import http.client
import json
from typing import Callable, Iterator, Optional, Tuple, cast

from ._answers import Event, Lock
from ._arguments import path, query
from ._calls import Calls, decode, error_of
from ._clock import backoff, pause, stopper
from ._errors import PaddockError, Unavailable
from ._transport import Request, Response

SILENT_FOR = 40.0  # seconds after which a stream is broken; the service sends a comment every 15
OnError = Optional[Callable[[PaddockError], object]]


class Failures:
    """What an endless iterator does about errors: one that a retry cannot fix is raised; of the others, the first of an
    outage is told, and the next try comes after a pause."""

    def __init__(self, on_error: OnError) -> None:
        self.failing: bool = False
        self._on_error, self._pauses = on_error, backoff(0.1, 2.0)

    def over(self) -> None:
        if self.failing:
            self.failing, self._pauses = False, backoff(0.1, 2.0)

    def seen(self, error: PaddockError) -> None:
        if not error.transient:
            raise error
        if error.fields.get("cut"):
            pause(0.1)
            return
        if not self.failing and self._on_error is not None:
            self._on_error(error)
        self.failing = True
        pause(max(next(self._pauses), error.retry_after))


def changes(calls: Calls, name: str, on_error: OnError) -> Iterator[Lock]:
    """See Paddock.changes."""
    failures, tag, longest = Failures(on_error), "", 0.0
    while True:
        longest = calls.longest_wait if tag else 0.0
        asked = query(wait_ms=round(longest * 1000) or None)
        request = Request("GET", path("/v1/locks", name, f"?{asked}"), None, calls.timeout, wait=longest, headers={"If-None-Match": tag} if tag else {})
        try:
            response = calls._exchange(request)
            if response.status == 304 and response.of_paddock:
                failures.over()
                continue
            answer = decode(response, "application/json") if response.status == 200 else {}
            if answer.get("name") != name or "state" not in answer:
                raise error_of(response, False)
        except PaddockError as e:
            failures.seen(e)
            if failures.failing:
                tag = ""  # tell the state again after an outage
            continue
        failures.over()
        tag = response.head.headers.get("ETag", "")
        yield cast(Lock, answer)


def events(calls: Calls, lock: Optional[str], prefix: Optional[str], cursor: Optional[str], on_error: OnError,
           on_gap: Optional[Callable[[str], object]]) -> Iterator[Event]:
    """See Paddock.stream."""
    failures = Failures(on_error)
    if cursor is None:  # so that a stream that fails before its first event misses nothing
        cursor = _now(calls, lock, prefix, failures)
    while True:
        asked = query(lock=lock, prefix=prefix, cursor=cursor)
        try:
            response = calls._exchange(Request("GET", f"/v1/events/stream?{asked}", None, calls.timeout, streamed=True))
            if response.connection is None or not response.of_paddock or response.head.headers.get_content_type() != "text/event-stream":
                raise error_of(response, False)
            failures.over()
            for kind, at, data in _read(response):
                cursor = at or cursor
                if kind == "gap" and on_gap is not None:
                    on_gap(cursor or "")
                elif kind not in ("", "sync", "gap", "unreadable"):
                    yield cast(Event, data)
        except PaddockError as e:
            failures.seen(e)


def _now(calls: Calls, lock: Optional[str], prefix: Optional[str], failures: Failures) -> Optional[str]:
    """Returns the cursor after all current events."""
    while True:
        try:
            return calls.events(lock=lock, prefix=prefix, cursor="now", limit=1).get("next_cursor")
        except PaddockError as e:
            failures.seen(e)


def _read(response: Response) -> Iterator[Tuple[str, str, object]]:
    """Yields the kind, the id and the data of each event; a comment that moves the cursor has no kind."""
    connection, sock = response.connection, response.sock
    assert connection is not None and sock is not None
    sock.settimeout(SILENT_FOR)
    kind, at, data = "", "", ""
    try:
        while True:
            stop = stopper.get()
            if stop is None:
                line = response.head.readline()
            else:
                with stop.reads(sock):
                    line = response.head.readline()
            if not line:
                raise Unavailable("unavailable", "The stream has ended; it is opened again.", None, {"cut": True})
            text = line.decode().rstrip("\r\n")
            if text == "":
                if kind or at:
                    yield kind, at, json.loads(data) if data else {}
                kind, at, data = "", "", ""
                continue
            field, _, value = text.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "event":
                kind = value
            elif field == "id":
                at = value
            elif field == "data":
                data += value
    except (OSError, http.client.HTTPException, ValueError) as e:
        current = stopper.get()
        if current is not None:
            current.check()
        raise Unavailable("unavailable", f"The stream broke: {e}. It is opened again.") from e
    finally:
        response.head.close()
        connection.close()
