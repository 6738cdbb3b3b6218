"""Work that is done once per period: how its release closes the lock, and what a call has come to."""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass
from typing import Any, Generic, Mapping, Optional, TypeVar

from ._answers import Json
from ._arguments import members, seconds, wrong_type
from ._errors import AlreadyDone, invalid

PERIODS = ("minute", "hour", "day", "week", "month")
MAX_CLOSED = 31 * 24 * 3600.0
_R = TypeVar("_R")


@dataclass(frozen=True)
class Turn(Generic[_R]):
    """What once has come to: it ran the work, whose result it has; or the work was done before: by the holder done_by, at
    done_at, an instant on the database's clock, and it still counts as done for left seconds."""

    ran: bool
    result: Optional[_R] = None
    done_by: Optional[str] = None
    done_at: Optional[str] = None
    left: float = 0.0

    @classmethod
    def before(cls, done: AlreadyDone) -> Turn[_R]:
        """Returns the turn of a call whose work was done before."""
        return cls(False, None, done.holder, done.done_at, done.retry_after)


def closing_of(name: str, period: Optional[str], time_zone: Optional[str], at_least: Optional[float]) -> Json:
    """Returns the arguments of the release after the work. Raises InvalidRequest before the work, not after it."""
    if not isinstance(name, str):
        raise wrong_type("The name", name, "text: work is done once under one lock")
    for option, value in (("period", period), ("time_zone", time_zone)):
        if value is not None and not isinstance(value, str):
            raise wrong_type(option, value, "text")
    seconds("at_least", at_least)
    if period is None and not at_least:
        raise invalid("period and at_least are missing; give one of them, or both.")
    if period is not None and period not in PERIODS:
        raise invalid(f"period is invalid; use {', '.join(PERIODS[:-1])} or {PERIODS[-1]}.")
    if at_least is not None and not 0 <= at_least <= MAX_CLOSED:
        raise invalid(f"at_least is {at_least:.10g}; give 0 to {MAX_CLOSED:.10g} (seconds).")
    if time_zone is not None and period is None:
        raise invalid("time_zone is only valid with period; leave it out.")
    if time_zone is not None and not _may_be_zone(time_zone):
        raise invalid("time_zone is unknown; give a name of the IANA database, such as Europe/Berlin, or leave it out for UTC.")
    return members(once_per=period, time_zone=time_zone, closed=at_least)


def check_options(options: Mapping[str, Any]) -> None:
    """Raises a TypeError for options of hold that once does not have. hold checks the others."""
    for option in ("mode", "capacity", "permits"):
        if option in options:
            raise TypeError(f"{option} is not an option of once, whose lock is exclusive; leave it out.")


def _may_be_zone(name: str) -> bool:
    """Reports whether this machine knows the time zone, or has no time zones at all: then only the service can tell."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return not zoneinfo.available_timezones()
    return True
