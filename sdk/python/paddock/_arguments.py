"""The arguments of calls: their types, and how a request spells them. A wrong type is a TypeError, a wrong value an InvalidRequest."""

from __future__ import annotations

import math
import re
import urllib.parse
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, Union

from ._answers import Json
from ._errors import invalid

# The name of a lock; or a list of up to 32 locks that are acquired together, all or none: names, or dicts with a name,
# a mode, a capacity and permits. Those of the call are for the locks without a mode.
Locks = Union[str, Sequence[Union[str, Mapping[str, Any]]]]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}")
_TEXT: Tuple[Type[Any], str] = (str, "text")
_WHOLE: Tuple[Type[Any], str] = (int, "a whole number")
_TYPES: Mapping[str, Tuple[Type[Any], str]] = {
    **dict.fromkeys(("holder", "lease_id", "session_id", "task_id", "mode", "reason", "where", "lock", "operation_id", "on_expiry", "acquired_at", "prefix",
                     "contains", "state", "sort", "kind", "since", "until", "order", "cursor", "at", "once_per", "time_zone"), _TEXT),
    **dict.fromkeys(("capacity", "permits", "fencing_token", "slot", "if_version", "limit", "max_leases"), _WHOLE),
    "metadata": (dict, "a dict"), "keep_place": (bool, "True or False"), "skip_grace": (bool, "True or False"),
    "once": (bool, "True or False"),
}
_OPTIONS = {"fencing_token": "token"}


def members(**given: Any) -> Json:
    """Returns the members of a request that are not None."""
    for member, value in given.items():
        kind, words = _TYPES.get(member, (object, ""))
        if value is not None and (not isinstance(value, kind) or kind is int and isinstance(value, bool)):
            raise wrong_type(_OPTIONS.get(member, member), value, words)
    return {member: value for member, value in given.items() if value is not None}


def wrong_type(option: str, value: object, words: str) -> TypeError:
    return TypeError(f"{option} is of the type {type(value).__name__}; give {words}.")


def seconds(option: str, value: Optional[float]) -> Optional[float]:
    """Checks a number of seconds, or None, and returns it."""
    if value is not None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong_type(option, value, "a number of seconds")
        if not math.isfinite(value):
            raise invalid(f"{option} is {value}; give a finite number of seconds.")
    return value


def ms(option: str, value: Optional[float]) -> Optional[int]:
    """Returns whole milliseconds; at least 1 for a positive duration."""
    value = seconds(option, value)
    return None if value is None else max(round(value * 1000), 1) if value > 0 else round(value * 1000)


def names_of(locks: Sequence[Union[str, Mapping[str, Any]]]) -> List[str]:
    if not isinstance(locks, (list, tuple)) or not all(isinstance(lock, (str, Mapping)) for lock in locks):
        raise TypeError("Give the name of a lock, or a list of names or of dicts with a name.")
    return [lock if isinstance(lock, str) else str(lock.get("name", "")) for lock in locks]


def lock_path(locks: Locks, verb: str) -> str:
    return path("/v1/locks", locks, verb) if isinstance(locks, str) else f"/v1{verb}"


def modes(locks: Locks, mode: str, capacity: Optional[int], permits: Optional[int]) -> Json:
    """Returns the members of an acquire that say which locks to acquire, besides the name in its path."""
    own = members(mode=mode, capacity=capacity, permits=permits)
    if isinstance(locks, str):
        return own
    names_of(locks)
    dicts: List[Dict[str, Any]] = [{"name": lock} if isinstance(lock, str) else dict(lock) for lock in locks]
    return {"locks": [members(**(lock if "mode" in lock else {**own, **lock})) for lock in dicts]}


def path(prefix: str, name: str, verb: str = "") -> str:
    if not isinstance(name, str):
        raise wrong_type("The name", name, "text")
    if not _NAME.fullmatch(name):
        raise invalid(f"{name!r} is not a valid name; use 1 to 200 of A-Z a-z 0-9 . _ : @ -")
    return f"{prefix}/{urllib.parse.quote(name, safe='')}{verb}"


def query(**given: Any) -> str:
    return urllib.parse.urlencode(members(**given))
