-- The previous release does not know trees: it would grant locks above and below each other. So there must be none, and
-- with the last tree the last intention is gone.

do $$
begin
    if exists (select from paddock.trees) then
        raise exception 'there are trees, which the previous release does not know'
            using hint = 'Remove them first: paddock tree list shows them, paddock tree remove ROOT removes one.';
    end if;
end
$$;

create or replace view paddock.leases as
select l.name, l.slot, l.holder, (array['exclusive', 'shared', 'permit'])[l.mode] as mode, l.token, l.acquired_at, r.expires_at,
       r.ttl_ms * interval '1 millisecond' as ttl, r.grace,
       case when coalesce(r.claim_by, r.expires_at + r.grace) <= statement_timestamp() then 'expired'
            when r.claim_by is not null then 'unclaimed'
            when l.ttl_ms = 0 then 'revoked'
            when r.expires_at > statement_timestamp() then 'held'
            else 'grace' end as state,
       (l.rest ->> 'metadata')::json as metadata,
       r.session
from (
    select name, 0 as slot, holder, mode, token, acquired_at, expires_at, ttl_ms, rest, session
    from paddock.records
    where lease_id is not null
    union all
    select name, slot, holder, mode, token, acquired_at, expires_at, ttl_ms, rest, session
    from paddock.parts
    where place = 0
) l
left join paddock.sessions s on s.ref = l.session and l.expires_at = '9999-12-31 00:00:00+00'
cross join lateral (
    select coalesce(s.grace_ms, (l.rest ->> 'grace')::bigint, 0) * interval '1 millisecond' as grace,
           coalesce(s.ttl_ms, l.ttl_ms) as ttl_ms,
           least(l.expires_at, s.expires_at,
                 case when s.ref is not null then l.acquired_at + (l.rest ->> 'max_hold')::bigint * interval '1 millisecond' end)
               as expires_at,
           timestamptz '1970-01-01 00:00:00+00' + (l.rest ->> 'claim_by')::bigint * interval '1 microsecond' as claim_by,
           lpad(to_hex(s.ref), 16, '0') as session
) r;

create or replace view paddock.queue as
select name, place, holder, (array['exclusive', 'shared', 'permit'])[mode] as mode, acquired_at as joined_at,
       expires_at as waits_until, nullif(replica, 0) as replica, unclaimed
from paddock.parts
where place > 0;

comment on column paddock.records.mode is '1: exclusive, 2: shared, 3: permit.';
alter table paddock.epochs drop column trees;
drop table paddock.trees;
