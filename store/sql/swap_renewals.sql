-- As swap.sql, for renewals, which only move the end of a lease: no token and no event.
update paddock.locks l
set ttl_ms     = n.ttl_ms,
    expires_at = n.expires_at,
    attachment = n.attachment
from unnest($1::paddock.swap[]) n
where l.ctid = n.at and l.xmin = n.version and l.name = n.name
  and clock_timestamp() < n.until
  and (select pg_postmaster_start_time() = $7::timestamptz
          and epoch = $4::bigint and closed_until is not distinct from $5::timestamptz and longest_ms >= $6::bigint
          and (not quorum or current_setting('synchronous_standby_names') <> '')
          and clock_timestamp() between $2::timestamptz and $3::timestamptz
       from paddock.epochs order by epoch desc limit 1)
returning n.ord, l.ctid as at, l.xmin as version, l.last_token as drawn, clock_timestamp() as now, 1 / (clock_timestamp() < n.until)::integer
