-- In how many milliseconds the next session is over, null for none.
select (extract(epoch from min(expires_at + grace_ms * interval '1 millisecond') - clock_timestamp()) * 1000)::double precision
from paddock.sessions
where not cleared and ended = 0 and isfinite(expires_at)
