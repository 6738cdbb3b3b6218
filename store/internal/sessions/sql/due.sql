-- The sessions that have ended and are not cleared, or are over and not ended, at most $1 of them, those that ended first; and
-- whether the grace of their leases is skipped.
select ref, skip_grace
from paddock.sessions
where not cleared
  and (ended <> 0 or expires_at + grace_ms * interval '1 millisecond' <= clock_timestamp())
order by coalesce(ended_at, expires_at), ref
limit $1
