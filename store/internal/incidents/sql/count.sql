-- Adds $1 expired leases, $2 revoked ones and $3 refused tokens to those of this minute, and returns the counts of the
-- last hour. Rows that are older are deleted. What this statement adds is not yet visible to itself.
with added as (
    insert into paddock.incidents (minute, expired, revoked, refused)
    select date_trunc('minute', statement_timestamp()), $1::bigint, $2::bigint, $3::bigint
    where $1 + $2 + $3 > 0
    on conflict (minute) do update
    set expired = incidents.expired + excluded.expired, revoked = incidents.revoked + excluded.revoked,
        refused = incidents.refused + excluded.refused
), pruned as (
    delete from paddock.incidents where minute < statement_timestamp() - interval '61 minutes'
)
select coalesce(sum(expired), 0)::bigint + $1, coalesce(sum(revoked), 0)::bigint + $2, coalesce(sum(refused), 0)::bigint + $3
from paddock.incidents
where minute > statement_timestamp() - interval '61 minutes'
