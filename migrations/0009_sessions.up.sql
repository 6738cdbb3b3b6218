-- Sessions: what keeps the leases of one client alive together.

create table paddock.sessions (
    ref        bigint      primary key,
    id         uuid        not null,
    holder     text        not null,
    ttl_ms     bigint      not null,
    grace_ms   bigint      not null,
    -- the text of the metadata; PostgreSQL could not read some JSON
    metadata   text,
    opened_at  timestamptz not null,
    expires_at timestamptz not null,
    -- how it has ended, 0 while it is open; when; and why, if an operator ended it
    ended      smallint    not null default 0,
    ended_at   timestamptz,
    reason     text        not null default '',
    skip_grace boolean     not null default false,
    -- whether it has ended, and no lease or waiter of it is left
    cleared    boolean     not null default false
) with (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0,
    autovacuum_analyze_threshold = 1000
);
-- No index has a column that a heartbeat changes, so that a heartbeat writes one row, and nothing else.
create index sessions_left on paddock.sessions (ref) where not cleared;
create index sessions_cleared on paddock.sessions (ended_at) where cleared;
comment on table paddock.sessions is
    'Sessions, one row each. A lease of a session expires when the session does, and its own expires_at is in the year 9999.';

-- The session of a lease or a waiter. A replica of the previous release keeps what is here when it writes a lease of its
-- own, whose expires_at is not in the year 9999: that belongs to no session.
alter table paddock.records add column session bigint;
alter table paddock.parts add column session bigint;
create index records_of_session on paddock.records (session) where session is not null;
create index parts_of_session on paddock.parts (session) where session is not null;

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
comment on column paddock.leases.session is 'The session that keeps the lease alive; null for none.';
