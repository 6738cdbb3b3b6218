-- Trees: the roots below which a lock covers the locks of longer names. Leases of the modes 4 and 5 are intentions: they
-- stand for leases of locks below.

create table paddock.trees (
    root        text collate "C" primary key,
    declared_at timestamptz not null
);
comment on table paddock.trees is 'The roots of the declared trees, one row each.';

-- This counts the changes of the trees in the epoch. A decision is written only if there was none since it was made.
alter table paddock.epochs add column trees bigint not null default 0;
comment on column paddock.epochs.trees is 'How often paddock.trees was changed in this epoch.';

comment on column paddock.records.mode is '1: exclusive, 2: shared, 3: permit, 4: intention shared, 5: intention exclusive.';

create or replace view paddock.leases as
select l.name, l.slot, l.holder, (array['exclusive', 'shared', 'permit', 'intention_shared', 'intention_exclusive'])[l.mode] as mode,
       l.token, l.acquired_at, r.expires_at,
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
select name, place, holder, (array['exclusive', 'shared', 'permit', 'intention_shared', 'intention_exclusive'])[mode] as mode,
       acquired_at as joined_at,
       expires_at as waits_until, nullif(replica, 0) as replica, unclaimed
from paddock.parts
where place > 0;
