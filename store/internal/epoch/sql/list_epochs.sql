-- All epochs, oldest first, and the database's clock.
select epoch, began_at, system_identifier, timeline, reason, closed_until, quorum, longest_ms, clock_timestamp()
from paddock.epochs
order by epoch
