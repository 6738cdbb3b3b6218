"""A child process that ends before another holder can get the lock."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Sequence

from ._arguments import seconds
from ._clock import stopper
from ._errors import invalid
from ._guard import LOST

if TYPE_CHECKING:
    from ._lease import Lease

POLL = 0.05  # the interval at which a child process is polled


def run(lease: Lease, argv: Sequence[str], kill_after: Optional[float], popen: Mapping[str, Any]) -> int:
    """See Lease.run."""
    margin, clock, stop = lease._margin, lease._paddock.clock, stopper.get()
    kill_after = margin / 2 if kill_after is None else kill_after
    if not 0 <= (seconds("kill_after", kill_after) or 0) <= lease._granted.ttl / 3:
        raise invalid(f"kill_after is {kill_after:g}; give 0 to {lease._granted.ttl / 3:g} (seconds), a third of the ttl.")
    lease.check()
    options = {**popen, "env": _environment(lease, popen.get("env"))}
    early = max(kill_after - margin / 2, 0.0)
    children: List[subprocess.Popen[Any]] = []
    try:
        # A KeyboardInterrupt does not reach the other thread, and the end of the with waits for it: no child is missed.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: children.append(subprocess.Popen(argv, start_new_session=True, **options))).result()
        child, = children
        while child.poll() is None and lease.remaining() > early:
            lease.lost.wait(POLL)
            if stop is not None:
                stop.check()
        overdue = child.returncode is None
    finally:
        for child in children:
            ended = lease.state == LOST and clock() < lease.deadline  # and another holder may have the lock
            until = min(clock() + (0 if ended else kill_after), lease.deadline + margin / 2)
            _terminate(child, clock, until)
    if overdue:
        lease._lose(lease._overdue())
        lease._raise_loss()
    return child.returncode


def _environment(lease: Lease, given: Optional[Mapping[str, str]]) -> Mapping[str, str]:
    own = {"PADDOCK_LOCK": lease.name, "PADDOCK_FENCING_TOKEN": str(lease.token), "PADDOCK_URL": ",".join(lease._paddock.base_urls),
           "PADDOCK_LOCKS": " ".join(lease.tokens), "PADDOCK_FENCING_TOKENS": _pairs(lease.tokens), "PADDOCK_SLOTS": _pairs({name: ",".join(str(slot) for slot in all if slot) for name, all in lease.slots.items()}),
           "PADDOCK_LEASE_HOLDER": lease._granted.answer["holder"], "PADDOCK_SLOT": str(lease.slot or ""),
           "PADDOCK_TASK": lease.task_id, "PADDOCK_LEASE_ID": "", "PADDOCK_EXPIRES_AT": ""}  # empty: removed; may be of another lease
    return {key: value for key, value in {**(given or os.environ), **own}.items() if own.get(key) != ""}


def _pairs(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items() if value)


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
