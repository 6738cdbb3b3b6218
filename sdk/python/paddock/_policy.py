"""The calls with which operators freeze locks, bound what may be asked of them, and look at the service itself."""

from __future__ import annotations

from typing import Any, Optional, Sequence, cast

from . import _answers as answers
from ._answers import Json
from ._arguments import members, ms, path


class Policy:
    """The single calls about freezes and rules, and those about cells and the service."""

    def freeze(self, scope: str, *, reason: str, duration: Optional[float] = None) -> answers.FreezeStatus:
        """Freezes the lock, or all locks whose names begin with a scope such as "billing:", for so many seconds or until thaw.
        When it returns, no replica grants them: acquires raise LockFrozen. Holders may renew and release, so the work stops by
        itself: call frozen until its leases are 0. A freeze of the same scope is replaced."""
        body = members(reason=reason, for_ms=ms("duration", duration))
        return cast(answers.FreezeStatus, self._call("PUT", path("/v1/freezes", scope), body, changes=True, has=("leases",), scope=scope))

    def frozen(self, scope: str) -> answers.FreezeStatus:
        """Returns the freeze of the scope, and how many leases are left. Raises the code not_found if it is not frozen."""
        return cast(answers.FreezeStatus, self._call("GET", path("/v1/freezes", scope), has=("leases",), scope=scope))

    def thaw(self, scope: str) -> None:
        """Ends the freeze of the scope, if there is one: waiters are granted the locks."""
        self._call("DELETE", path("/v1/freezes", scope), changes=True)

    def freezes(self) -> answers.FreezeList:
        """Returns the freezes in force, in the order of their scopes."""
        return cast(answers.FreezeList, self._call("GET", "/v1/freezes", has=("freezes",)))

    def set_rule(self, scope: str, *, max_ttl: Optional[float] = None, max_hold: Optional[float] = None, min_grace: Optional[float] = None,
                 capacity: Optional[int] = None, max_leases: Optional[int] = None) -> answers.Rule:
        """Bounds what may be asked of the locks of the scope, instead of the rule of this scope before. When it returns, no
        replica grants anything outside of it: such a call raises InvalidRequest. The rule of the longest scope applies. With
        a capacity, callers leave out theirs. max_leases is how many leases below the scope one API key may have."""
        body = members(max_ttl_ms=ms("max_ttl", max_ttl), max_hold_ms=ms("max_hold", max_hold), min_grace_ms=ms("min_grace", min_grace),
                       capacity=capacity, max_leases=max_leases)
        return cast(answers.Rule, self._call("PUT", path("/v1/rules", scope), body, changes=True, has=("set_at",), scope=scope))

    def remove_rule(self, scope: str) -> None:
        """Removes the rule of the scope, if there is one. Then that of a shorter scope applies, if there is one."""
        self._call("DELETE", path("/v1/rules", scope), changes=True)

    def rules(self) -> answers.RuleList:
        """Returns all rules, in the order of their scopes."""
        return cast(answers.RuleList, self._call("GET", "/v1/rules", has=("rules",)))

    def cells(self) -> answers.CellList:
        """Returns the databases of a service that has several, and which groups of locks were moved to each. Empty if it has one."""
        return cast(answers.CellList, self._call("GET", "/v1/cells", has=("cells",)))

    def service(self) -> Json:
        """Returns how the service itself is: its replicas, its databases and its settings, as openapi.yaml describes them. The
        key needs the role admin for all names."""
        return self._call("GET", "/v1/service", has=("databases",))

    def _call(self, method: str, where: str, body: Optional[Json] = None, *, changes: bool = False, has: Sequence[str] = (), **same: Any) -> Json:
        raise NotImplementedError
