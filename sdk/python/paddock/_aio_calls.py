"""The single calls of the client for asyncio: those of the client for threads, in threads."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Coroutine, TypeVar

from . import _client as client
from ._threads import Threads

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    _P = ParamSpec("_P")

_R = TypeVar("_R")


def _call(method: Callable[Concatenate[client.Paddock, _P], _R]) -> Callable[
        [Callable[[AioCalls], object]], Callable[Concatenate[AioCalls, _P], Coroutine[Any, Any, _R]]]:
    """Makes a method of the client for threads one of this client, with its signature."""

    @functools.wraps(method)
    async def run(self: AioCalls, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        return await self._threads.run(lambda: method(self._paddock, *args, **kwargs))

    return lambda _: run


class AioCalls:
    """The single calls of a paddock.aio.Paddock."""

    _paddock: client.Paddock
    _threads: Threads

    @_call(client.Paddock.acquire)
    def acquire(self) -> None: ...

    @_call(client.Paddock.renew)
    def renew(self) -> None: ...

    @_call(client.Paddock.release)
    def release(self) -> None: ...

    @_call(client.Paddock.revoke)
    def revoke(self) -> None: ...

    @_call(client.Paddock.batch)
    def batch(self) -> None: ...

    @_call(client.Paddock.open_session)
    def open_session(self) -> None: ...

    @_call(client.Paddock.renew_session)
    def renew_session(self) -> None: ...

    @_call(client.Paddock.close_session)
    def close_session(self) -> None: ...

    @_call(client.Paddock.sessions)
    def sessions(self) -> None: ...

    @_call(client.Paddock.session)
    def session(self) -> None: ...

    @_call(client.Paddock.revoke_session)
    def revoke_session(self) -> None: ...

    @_call(client.Paddock.declare_tree)
    def declare_tree(self) -> None: ...

    @_call(client.Paddock.remove_tree)
    def remove_tree(self) -> None: ...

    @_call(client.Paddock.trees)
    def trees(self) -> None: ...

    @_call(client.Paddock.freeze)
    def freeze(self) -> None: ...

    @_call(client.Paddock.frozen)
    def frozen(self) -> None: ...

    @_call(client.Paddock.thaw)
    def thaw(self) -> None: ...

    @_call(client.Paddock.freezes)
    def freezes(self) -> None: ...

    @_call(client.Paddock.set_rule)
    def set_rule(self) -> None: ...

    @_call(client.Paddock.remove_rule)
    def remove_rule(self) -> None: ...

    @_call(client.Paddock.rules)
    def rules(self) -> None: ...

    @_call(client.Paddock.cells)
    def cells(self) -> None: ...

    @_call(client.Paddock.service)
    def service(self) -> None: ...

    @_call(client.Paddock.lock)
    def lock(self) -> None: ...

    @_call(client.Paddock.queue)
    def queue(self) -> None: ...

    @_call(client.Paddock.locks)
    def locks(self) -> None: ...

    @_call(client.Paddock.holds)
    def holds(self) -> None: ...

    @_call(client.Paddock.events)
    def events(self) -> None: ...

    @_call(client.Paddock.wait_for_events)
    def wait_for_events(self) -> None: ...

    @_call(client.Paddock.verify_token)
    def verify_token(self) -> None: ...

    @_call(client.Paddock.report_stale_token)
    def report_stale_token(self) -> None: ...

    @_call(client.Paddock.write_fenced)
    def write_fenced(self) -> None: ...

    @_call(client.Paddock.read_fenced)
    def read_fenced(self) -> None: ...
