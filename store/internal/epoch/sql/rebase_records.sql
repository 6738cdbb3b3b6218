-- Moves the leases in the rows of locks to another clock, whose present is $1, or $2 in microseconds since 1970: each
-- has its whole TTL from then on, or what was left of it when it was renewed with a shorter TTL. One that was renewed
-- since, while this statement ran, keeps its later end, which its holder was told: this happens if an operator starts
-- an epoch on a server whose replicas go on. A lease that was over at $4, the old clock's last known time, stays over.
-- An unclaimed lease goes back to the queue. A max hold keeps the time that was used. Changes in the future of the new
-- clock move to the present: a lock's time never runs backwards, so the lock would stand still. Records with parts are
-- written as well, because sql/rebase_parts.sql changes those. A lease of a session, whose expires_at is $3, has no TTL of
-- its own: it ends with its session, see sql/rebase_sessions.sql.
--
-- The locks are those whose names are from one of $5 to the one of $6 at the same place, exclusive.
update paddock.records r
set acquired_at = case
        when r.lease_id is null then null
        when r.expires_at = $3::timestamptz then least($1::timestamptz - greatest($4::timestamptz - r.acquired_at, interval '0'), $1)
        when paddock.duration(r.rest, 'max_hold') > interval '0'
            then $1::timestamptz
                 - greatest(r.expires_at - coalesce(paddock.duration(r.rest, 'left'), r.ttl_ms * interval '1 millisecond')
                     - r.acquired_at, interval '0')
        else least(r.acquired_at, $1)
    end,
    expires_at = case
        when r.expires_at = $3::timestamptz then r.expires_at
        when r.expires_at + coalesce(paddock.duration(r.rest, 'grace'), interval '0') <= $4::timestamptz
            then $1 - coalesce(paddock.duration(r.rest, 'grace'), interval '0')
        else greatest($1 + coalesce(paddock.duration(r.rest, 'left'), r.ttl_ms * interval '1 millisecond'),
            case when r.expires_at <= clock_timestamp() + coalesce(paddock.duration(r.rest, 'left'), r.ttl_ms * interval '1 millisecond')
                then r.expires_at end)
    end,
    rest = case
        when r.rest ->> 'claim_by' is not null then (r.rest::jsonb || jsonb_build_object('claim_by', $2::bigint))::json
        else r.rest
    end,
    changed_at = least(r.changed_at, $1)
from unnest($5::text[], $6::text[]) as n (first, beyond)
where r.name >= n.first and r.name < n.beyond and (r.lease_id is not null or r.parts > 0 or r.changed_at > $1)
