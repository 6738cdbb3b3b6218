-- Leases of sessions keep the time that their sessions have left. Their holders cannot renew them any more by a heartbeat.

update paddock.records r
set expires_at = s.expires_at, ttl_ms = s.ttl_ms,
    rest = (coalesce(r.rest::jsonb, '{}') || jsonb_build_object('grace', s.grace_ms))::json
from paddock.sessions s
where s.ref = r.session and r.lease_id is not null and r.expires_at = '9999-12-31 00:00:00+00';
update paddock.parts p
set expires_at = s.expires_at, ttl_ms = s.ttl_ms,
    rest = (coalesce(p.rest::jsonb, '{}') || jsonb_build_object('grace', s.grace_ms))::json
from paddock.sessions s
where s.ref = p.session and p.place = 0 and p.expires_at = '9999-12-31 00:00:00+00';

drop view paddock.leases;
alter table paddock.records drop column session;
alter table paddock.parts drop column session;
drop table paddock.sessions;

create view paddock.leases as
select l.name, l.slot, l.holder, (array['exclusive', 'shared', 'permit'])[l.mode] as mode, l.token, l.acquired_at, l.expires_at,
       l.ttl_ms * interval '1 millisecond' as ttl, r.grace,
       case when coalesce(r.claim_by, l.expires_at + r.grace) <= statement_timestamp() then 'expired'
            when r.claim_by is not null then 'unclaimed'
            when l.ttl_ms = 0 then 'revoked'
            when l.expires_at > statement_timestamp() then 'held'
            else 'grace' end as state,
       (l.rest ->> 'metadata')::json as metadata
from (
    select name, 0 as slot, holder, mode, token, acquired_at, expires_at, ttl_ms, rest
    from paddock.records
    where lease_id is not null
    union all
    select name, slot, holder, mode, token, acquired_at, expires_at, ttl_ms, rest
    from paddock.parts
    where place = 0
) l
cross join lateral (
    select coalesce((l.rest ->> 'grace')::bigint, 0) * interval '1 millisecond' as grace,
           timestamptz '1970-01-01 00:00:00+00' + (l.rest ->> 'claim_by')::bigint * interval '1 microsecond' as claim_by
) r;
comment on view paddock.leases is 'The leases, one row each.';
comment on column paddock.leases.slot is 'The slot of a shared lease or a permit, from 1 on; 0 for an exclusive lease.';
comment on column paddock.leases.state is
    'held; grace: expired, but its holder may renew it; revoked: only its grace is left; unclaimed: granted to a waiter '
    'whose replica has not confirmed it yet; expired: it is over, and no decision has recorded that yet.';
