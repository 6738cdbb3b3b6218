"""The fence of your own PostgreSQL tables."""

from __future__ import annotations

from typing import Any, Mapping, Protocol, Sequence


class Executes(Protocol):
    """A connection of psycopg, or a cursor of psycopg or psycopg2."""

    def execute(self, query: Any, params: Sequence[Any], /) -> object: ...


def fence(database: Executes, tokens: Mapping[str, int]) -> None:
    """Checks the tokens of several resources, each as paddock_fence does, in a transaction that is open and before its
    writes: such as lease.tokens, or {"accounts": lease.token}. It goes through them in the order of their names, so that
    transactions with several resources do not deadlock. A stale token raises an error of the driver whose sqlstate is
    PF001: roll back, and stop the work."""
    for resource, token in sorted(tokens.items()):
        database.execute("select paddock_fence(%s, %s)", (resource, token))
