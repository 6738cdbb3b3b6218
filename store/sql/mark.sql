-- From here to the end of the transaction readers of events know that ids
-- greater than the one in this advisory lock's key may be missing.
select pg_advisory_xact_lock_shared($1::bigint | case when is_called then last_value else 0 end)
from paddock.event_ids
