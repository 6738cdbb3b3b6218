-- The replicas that were alive within the last $1, the oldest first.
select id, host, version, started_at, beat_at, alive_until > clock_timestamp() as alive, connections, waiting, streams
from paddock.replicas
where alive_until > clock_timestamp() - $1::interval
order by started_at, id
