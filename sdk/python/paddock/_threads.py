"""Threads for the client of asyncio: blocking calls that are awaited, cancelled and iterated over."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import Any, AsyncGenerator, Awaitable, Callable, Iterator, Optional, Set, TypeVar

from ._acquire import RELEASE_TIMEOUT
from ._calls import caller
from ._clock import Stopped, Stopper, stopper
from ._errors import PaddockError

STOP_TIMEOUT = RELEASE_TIMEOUT + 0.5  # how long a cancellation waits for the thread to clean up
MAX_THREADS = 10_000
_R = TypeVar("_R")
_End: Any = object()


class Threads:
    """The threads of one client. A thread takes up one call after another."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="paddock")
        self._settling: Set[asyncio.Future[Any]] = set()  # which nobody else refers to

    async def run(self, work: Callable[[], _R], undo: Optional[Callable[[_R], object]] = None, stoppable: bool = True) -> _R:
        """Runs work in a thread and returns its result. If this is cancelled, the work is stopped, or goes on if it is not
        stoppable; undo undoes a result that came too late."""
        stop, context, current = Stopper(), contextvars.copy_context(), asyncio.current_task()
        context.run(caller.set, current.get_name() if current else "")
        context.run(stopper.set, stop if stoppable else None)
        future = asyncio.get_running_loop().run_in_executor(self._pool, context.run, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if stoppable:
                stop.stop()
            settled = asyncio.ensure_future(self._settle(future, undo))
            self._settling.add(settled)
            settled.add_done_callback(self._settling.discard)
            await asyncio.wait({settled}, timeout=STOP_TIMEOUT)
            raise

    async def _settle(self, future: Awaitable[_R], undo: Optional[Callable[[_R], object]]) -> None:
        with contextlib.suppress(Stopped, PaddockError):
            result = await future
            if undo is not None:
                await asyncio.get_running_loop().run_in_executor(self._pool, undo, result)

    async def iterate(self, items: Iterator[_R]) -> AsyncGenerator[_R, None]:
        """Yields the items, each of which is waited for in a thread."""
        try:
            while True:
                item = await self.run(lambda: next(items, _End))
                if item is _End:
                    return
                yield item  # type: ignore[misc]
        finally:
            close = getattr(items, "close", None)
            with contextlib.suppress(ValueError):  # it is still stopping
                if close is not None:
                    close()

    def close(self) -> None:
        self._pool.shutdown(wait=False)


def in_loop(listener: Optional[Callable[..., object]]) -> Optional[Callable[..., object]]:
    """Returns a function for other threads that calls the listener in this event loop."""
    if listener is None:
        return None
    loop, call = asyncio.get_running_loop(), listener

    def forward(*args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(call, *args)

    return forward
