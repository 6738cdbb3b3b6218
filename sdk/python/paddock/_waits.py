"""The lengths of the waits that a client asks for."""

from __future__ import annotations

import math
import time

MAX_WAIT = 10.0  # of one call: a dead address is noticed while the service keeps the place
MIN_WAIT = 1.0  # the shortest wait that is learned; a call that failed sooner was not cut, but failed
AT_ONCE = 1.0  # how soon after a cut the next wait is sent
LIMIT_LASTS = 600.0  # how long a limit is remembered


class Waits:
    """The lengths of the waits that a client asks for. A longer wait takes several calls, one after another.

    A proxy may limit the time of a call, and cut longer ones. So does a replica that crashes, but once and all of them
    together. So a cut is a proxy's limit if it is a 504, or if it is the second one after about the same time, of a wait
    that was sent at once after the first. Then calls ask for 80 % of that time, for ten minutes, and the address counts as
    well; after any other cut, the wait goes on at the next address. client/testdata/waits.json has the cases.
    """

    def __init__(self) -> None:
        self._limit, self._limit_at = MAX_WAIT, -math.inf
        self._cut_after, self._cut_at = 0.0, -math.inf  # of the last cut that came alone or first

    @property
    def longest(self) -> float:
        """The longest wait to ask for."""
        return self._limit if time.monotonic() - self._limit_at < LIMIT_LASTS else MAX_WAIT

    def cut(self, sent: float, status: int) -> bool:
        """Is called when a wait that was sent at that instant was cut: with 502, 504, or 0 if its connection broke. Reports
        whether that was a proxy's limit."""
        now = time.monotonic()
        after, pause = now - sent, sent - self._cut_at
        is_limit = status == 504
        if not is_limit and pause < 0:
            return False  # one crash may have cut both
        is_limit = is_limit or pause <= AT_ONCE and _most(after) < self._cut_after and _most(self._cut_after) < after
        self._cut_after, self._cut_at = after, now
        if is_limit:
            self._limit, self._limit_at = max(min(_most(after), self.longest), MIN_WAIT), now
        return is_limit


def _most(after: float) -> float:
    """Returns what may be asked for where a wait was cut after that time."""
    return 0.8 * after
