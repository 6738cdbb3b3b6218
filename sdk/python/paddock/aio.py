"""The client for asyncio.

    from paddock import LockHeld
    from paddock.aio import Paddock

    async with Paddock("http://127.0.0.1:8080") as paddock:
        async with paddock.hold("jobs:nightly", ttl=30, wait=None) as lease:
            for row in rows:
                await write(row, lease.token)  # cancelled when the lease is lost; then the block raises LeaseLost

It is a thin layer: the calls of the client for threads run in threads of this module, and only the guard is of asyncio. So
the protocol is written once; and a lease is renewed, and lost at its deadline, however long a task blocks the event loop.
Its price is a thread for each call under way, waits included, and two for each lease outside a session. A loss cancels the
task in the block, as asyncio.timeout does it: the CancelledError becomes the LeaseLost at the end of the block. A call that is
cancelled is ended in its thread, too: a wait leaves the queue before the CancelledError is raised, if the service
answers within two seconds.

Options and errors are those of paddock.Paddock. Callbacks are called in the event loop.
"""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Any, AsyncGenerator, Callable, Coroutine, Dict, Generator, Generic, List, Mapping, Optional, Sequence
from typing import Type, TypedDict, TypeVar, Union

from . import _client as client
from ._acquire import RELEASE_TIMEOUT, task
from ._aio_calls import AioCalls
from ._answers import Event, Json, Lock
from ._arguments import Locks, wrong_type
from ._election import Leader
from ._election import Term as _ThreadTerm
from ._election import metadata_of
from ._errors import AlreadyDone, LeaseLost, SessionLost
from ._guard import Guard as _ThreadGuard
from ._lease import Lease as _ThreadLease
from ._once import Turn, check_options, closing_of
from ._session import Session as _ThreadSession
from ._streams import OnError
from ._threads import Threads, in_loop
from ._transport import TLS

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Election", "Hold", "HoldOptions", "HoldSessionOptions", "Lease", "Paddock", "Session", "Term"]
_LISTENERS = ("on_state", "on_lost", "on_acquired", "on_renewed")  # options that are called

_R = TypeVar("_R")
_G = TypeVar("_G", bound="_Guard")
_L = TypeVar("_L", bound=_ThreadLease)


class _Guard:
    """A lease or a session. In an async with block, the task in it is cancelled when it is lost."""

    def __init__(self, threads: Threads, guard: _ThreadGuard) -> None:
        self._threads, self._guard = threads, guard
        self.lost: asyncio.Event = asyncio.Event()
        self._task: Optional[asyncio.Task[Any]] = None  # in the block
        self._cancelled, self._cancelling = False, 0
        self._outer_task = ""
        guard._on_end = in_loop(self._ended)
        if guard.lost.is_set():
            self._ended()

    def _ended(self) -> None:
        """Is called in the loop when it is lost or released."""
        self.lost.set()
        if self._task is not None and self._guard.state == "lost" and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    @property
    def state(self) -> str:
        """held, at_risk, lost or released."""
        return self._guard.state

    @property
    def error(self) -> Optional[Exception]:
        """Why it is at risk, lost or released."""
        return self._guard.error

    @property
    def deadline(self) -> float:
        """The instant, on the client's clock, from which it counts as lost unless it is renewed."""
        return self._guard.deadline

    def remaining(self) -> float:
        """Returns the seconds until the deadline; 0 if it is lost or released. It reads the clock."""
        return self._guard.remaining()

    def check(self) -> None:
        """Raises LeaseLost, or SessionLost for a session, if it is lost or released, or the deadline has passed."""
        self._guard.check()

    async def __aenter__(self: _G) -> _G:
        self._outer_task = task.get()
        task.set(self._guard.task_id or self._outer_task)
        self._task = asyncio.current_task()
        if sys.version_info >= (3, 11) and self._task is not None:
            self._cancelling = self._task.cancelling()
        if self.lost.is_set():
            self._ended()
        return self

    async def __aexit__(self, _: Optional[Type[BaseException]], error: Optional[BaseException], __: Optional[TracebackType]) -> None:
        task.set(self._outer_task)
        inside, self._task = self._task, None
        by_loss = self._cancelled and isinstance(error, asyncio.CancelledError)
        if self._cancelled and sys.version_info >= (3, 11) and inside is not None:
            by_loss = inside.uncancel() <= self._cancelling and by_loss  # else somebody else cancels it, too
        await self._threads.run(lambda: self._guard._end_block(error, by_loss), stoppable=False)

    async def _end(self, timeout: float) -> None:
        await self._threads.run(lambda: self._guard._end(timeout), stoppable=False)


class Lease(_Guard):
    """A lease that is renewed until it is released. lost is an event that is set when it is lost or released. See paddock.Lease."""

    def __init__(self, threads: Threads, lease: _ThreadLease) -> None:
        super().__init__(threads, lease)
        self._lease = lease
        self.name: str = lease.name
        self.token: int = lease.token
        self.slot: int = lease.slot
        self.tokens: Dict[str, int] = lease.tokens
        self.slots: Dict[str, List[int]] = lease.slots
        self.task_id: str = lease.task_id

    async def release(self, timeout: float = 5.0) -> None:
        """Releases the lease; may be repeated. See paddock.Lease.release. If it is cancelled, the release goes on."""
        await self._end(timeout)

    async def set_metadata(self, metadata: Json, *, timeout: Optional[float] = None) -> None:
        """Replaces the metadata, which every reader of the lock sees. Raises LeaseLost if the lease has ended."""
        await self._threads.run(lambda: self._lease.set_metadata(metadata, timeout=timeout))

    async def run(self, argv: Sequence[str], *, kill_after: Optional[float] = None, **popen: Any) -> int:
        """Runs a child process under the lease and returns its exit code. See paddock.Lease.run. If it is cancelled, the
        child's process group is stopped."""
        return await self._threads.run(lambda: self._lease.run(argv, kill_after=kill_after, **popen))


class Term(Lease):
    """The lease of an elected leader. Its token grows with each term."""

    async def proclaim(self, value: str, *, timeout: Optional[float] = None) -> None:
        """Changes the leader's value. Observers may miss a value that is soon replaced, but never the last one."""
        await self.set_metadata(metadata_of(value), timeout=timeout)

    async def resign(self, timeout: float = 5.0) -> None:
        """Ends the term like release. The next candidate is elected immediately."""
        await self.release(timeout)


class Session(_Guard):
    """A session that is renewed until it is closed. See paddock.Session."""

    def __init__(self, threads: Threads, session: _ThreadSession) -> None:
        super().__init__(threads, session)
        self._session = session
        self.id: str = session.id
        self.ref: str = session.ref

    async def close(self, timeout: float = 5.0) -> None:
        """Closes the session, which releases all of its leases; may be repeated. See paddock.Session.close."""
        await self._end(timeout)


class Hold(Generic[_G]):
    """A lease or session to be: await it, or use it in an async with statement."""

    def __init__(self, call: str, begin: Callable[[], Coroutine[Any, Any, _G]]) -> None:
        self._call, self._begin, self._begun = call, begin, False
        self._guard: Optional[_G] = None

    def __await__(self) -> Generator[Any, None, _G]:
        self._begun = True
        return self._begin().__await__()

    def __del__(self) -> None:
        if not self._begun:
            warnings.warn(f"{self._call} was never awaited, so nothing is held; use it in async with, or await it", RuntimeWarning, 2, self)

    async def __aenter__(self) -> _G:
        self._guard = await self
        return await self._guard.__aenter__()

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        assert self._guard is not None
        await self._guard.__aexit__(kind, error, trace)


class _Options(TypedDict, total=False):
    ttl: Optional[float]
    retry: float
    margin: Optional[float]
    on_state: Optional[Callable[[str, Optional[Exception]], object]]
    on_renewed: Optional[Callable[[float, Optional[Exception]], object]]
    holder: Optional[str]
    grace: Optional[float]
    metadata: Optional[Json]


class HoldOptions(_Options, total=False):
    """The options of hold: those of paddock.Paddock.hold without interrupt_main."""

    wait: Optional[float]
    on_lost: Optional[Callable[[LeaseLost], object]]
    on_acquired: Optional[Callable[[float, Optional[BaseException]], object]]
    mode: str
    capacity: Optional[int]
    permits: Optional[int]
    max_hold: Optional[float]
    on_expiry: Optional[str]
    session: Optional[Session]
    task_id: Optional[str]
    lease_id_file: Union[str, os.PathLike[str], None]


class HoldSessionOptions(_Options, total=False):
    """The options of hold_session: those of paddock.Paddock.hold_session without interrupt_main."""

    session_id: Optional[str]
    on_lost: Optional[Callable[[SessionLost], object]]


class Paddock(AioCalls):
    """A client of a Paddock service for asyncio. Its arguments and methods are those of paddock.Paddock: calls are
    coroutines, hold and hold_session are for async with, and streams for async for. Use it in one event loop, in an async
    with statement or until close."""

    def __init__(self, base_url: Optional[str] = None, *, base_urls: Optional[Sequence[str]] = None,
                 key: Union[str, Callable[[], str], None] = None, timeout: float = 10.0, headers: Optional[Mapping[str, str]] = None,
                 tls: TLS = None, clock: Optional[Callable[[], float]] = None) -> None:
        self._paddock = client.Paddock(base_url, base_urls=base_urls, key=key, timeout=timeout, headers=headers, tls=tls, clock=clock)
        self._threads = Threads()

    async def close(self) -> None:
        """Closes the connections and ends the threads. Release what you hold before."""
        self._paddock.close()
        self._threads.close()

    async def __aenter__(self) -> Paddock:
        return self

    async def __aexit__(self, _: Optional[Type[BaseException]], __: Optional[BaseException], ___: Optional[TracebackType]) -> None:
        await self.close()

    @property
    def clock(self) -> Callable[[], float]:
        """The clock of deadlines."""
        return self._paddock.clock

    @property
    def base_urls(self) -> List[str]:
        """The addresses."""
        return self._paddock.base_urls

    def hold(self, name: Locks, **options: Unpack[HoldOptions]) -> Hold[Lease]:
        """Acquires the lock, or several, all or none, and renews the lease until it is released: async with
        paddock.hold(...) as lease. If it is lost, the task in the block is cancelled, and the block raises LeaseLost. If
        the wait is cancelled, it leaves the queue."""
        return Hold("hold", lambda: self._hold(Lease, _ThreadLease, name, options))

    async def once(self, name: str, work: Callable[[Lease], Coroutine[Any, Any, _R]], *, period: Optional[str] = None,
                   time_zone: Optional[str] = None, at_least: Optional[float] = None, **options: Any) -> Turn[_R]:
        """Awaits work(lease) if no process has done it in this period, and then closes the lock for the rest of the period. The
        task is cancelled if the lease is lost, as in a block of hold. See paddock.Paddock.once."""
        closing = closing_of(name, period, time_zone, at_least)
        check_options(options)
        try:
            lease = await self._hold(Lease, _ThreadLease, name, options, once=True)
        except AlreadyDone as e:
            return Turn.before(e)
        async with lease:
            result = await work(lease)
            lease._lease._closing = closing
        return Turn(True, result)

    async def _hold(self, kind: Callable[[Threads, _L], _G], thread_kind: Type[_L], name: Locks, options: Mapping[str, Any],
                    once: bool = False) -> _G:
        plain = _plain(options)
        return kind(self._threads, await self._threads.run(lambda: self._paddock._hold(thread_kind, name, plain, once), _ThreadLease._abandon))

    def hold_session(self, **options: Unpack[HoldSessionOptions]) -> Hold[Session]:
        """Opens a session and renews it until it is closed: async with paddock.hold_session() as session. Hold locks in it
        with hold(name, session=session)."""

        async def begin() -> Session:
            plain = _plain(options)
            return Session(self._threads, await self._threads.run(lambda: self._paddock.hold_session(**plain), lambda late: late.close(RELEASE_TIMEOUT)))

        return Hold("hold_session", begin)

    def election(self, name: str, **options: Any) -> Election:
        """Returns the election with this name. See paddock.Paddock.election."""
        return Election(self, name, options)

    def stream(self, *, lock: Optional[str] = None, prefix: Optional[str] = None, cursor: Optional[str] = None,
               on_error: OnError = None, on_gap: Optional[Callable[[str], object]] = None) -> AsyncGenerator[Event, None]:
        """Yields events without end. See paddock.Paddock.stream."""
        return self._threads.iterate(self._paddock.stream(lock=lock, prefix=prefix, cursor=cursor, on_error=in_loop(on_error), on_gap=in_loop(on_gap)))

    def changes(self, name: str, *, on_error: OnError = None) -> AsyncGenerator[Lock, None]:
        """Yields the lock, and again whenever it has changed, without end. See paddock.Paddock.changes."""
        return self._threads.iterate(self._paddock.changes(name, on_error=in_loop(on_error)))


class Election:
    """An election, from Paddock.election. See paddock.Election."""

    def __init__(self, paddock: Paddock, name: str, options: Mapping[str, Any]) -> None:
        self.name: str = name
        self._paddock, self._options = paddock, options
        self._election = paddock._paddock.election(name, **options)

    def campaign(self, value: str, *, wait: Optional[float] = None) -> Hold[Term]:
        """Waits until it is elected, without limit unless wait says how long: async with election.campaign(...) as term.
        If it is cancelled, the candidate has withdrawn."""
        options = {**self._options, "metadata": metadata_of(value), "wait": wait}
        return Hold("campaign", lambda: self._paddock._hold(Term, _ThreadTerm, self.name, options))

    async def leader(self) -> Optional[Leader]:
        """Returns the current leader, None if there is none."""
        return await self._paddock._threads.run(self._election.leader)

    def observe(self, *, on_error: OnError = None) -> AsyncGenerator[Optional[Leader], None]:
        """Yields the current leader, None if there is none, and then each change. See paddock.Election.observe."""
        return self._paddock._threads.iterate(self._election.observe(on_error=in_loop(on_error)))


def _plain(options: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the options for the client for threads."""
    if "interrupt_main" in options:
        raise TypeError("interrupt_main is not an option in asyncio: a loss cancels the task in the block.")
    plain = {option: in_loop(value) if option in _LISTENERS else value for option, value in options.items()}
    session = plain.get("session")
    if session is not None:
        if not isinstance(session, Session):
            raise wrong_type("session", session, "a Session of paddock.aio")
        plain["session"] = session._session
    return plain
