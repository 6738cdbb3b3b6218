-- A row of every kind that a replica of schema 4 writes.

-- Free locks, one with a lease that ended, one that was only asked for; and locks with an exclusive lease on their anchor.
insert into paddock.locks (name, revision, last_token, last_end, changed_at, lease_id, mode, holder, token, ttl_ms, grace_ms,
                           max_hold_ms, acquired_at, expires_at, metadata, place, attachment, claim_by)
values
    ('free', 34, 11, 2, '2026-01-02 03:04:05.000001Z', null, null, null, null, null, null, null, null, null, null, 0, 0, null),
    ('never', 0, 0, 0, '2026-01-02 03:04:05Z', null, null, null, null, null, null, null, null, null, null, 0, 0, null),
    ('held', 1, 12, 0, '2026-01-02 03:04:05.000002Z', '00000000-0000-4000-8000-000000000001', 1, 'worker 1', 12, 30000, 0, 0,
     '2026-01-02 03:04:05.000002Z', '2026-01-02 03:04:35.000002Z', null, 0, 0, null),
    ('held:all', 5000000000, 9007199254740000, 0, '2026-01-02 03:04:05.999999Z', '00000000-0000-4000-8000-000000000002', 1,
     E'quote " back \\ ü 漢 \U0001F600', 9007199254740000, 30000, 5000, 3600000, '2026-01-02 03:04:05.999999Z',
     '2026-01-02 03:04:36Z', '{"a": null, "b":[1.50, "ü\u00e9"], "a":2}', 7, -9223372036854775808, null),
    ('revoked', 3, 13, 4, '2026-01-02 03:04:06Z', '00000000-0000-4000-8000-000000000003', 1, 'worker 2', 13, 0, 60000, 0,
     '2026-01-02 03:04:00Z', '2026-01-02 03:04:06Z', null, 0, 0, null),
    ('unclaimed', 4, 14, 0, '2026-01-02 03:04:07Z', '00000000-0000-4000-8000-000000000004', 1, 'worker 3', 14, 30000, 0, 0,
     '2026-01-02 03:04:07Z', '2026-01-02 03:04:37Z', null, 2, 77, '2026-01-02 03:04:09.000003Z'),
    (E'"ünï\\', 1, 15, 3, '2026-01-02 03:04:08Z', null, null, null, null, null, null, null, null, null, null, 0, 0, null);

-- Readers, and permits, one of them unclaimed.
insert into paddock.locks (name, revision, last_token, capacity, queued, sitting, changed_at)
values ('permits', 9, 23, 3, 2, 2, '2026-01-02 03:04:10Z'),
       ('shared', 20, 21, 0, 2, 2, '2026-01-02 03:04:11Z');
update paddock.locks set queued = 1 where name = 'unclaimed';
insert into paddock.locks (name, slot, lease_id, mode, holder, token, ttl_ms, grace_ms, max_hold_ms, acquired_at, expires_at,
                           metadata, place, attachment, claim_by)
values
    ('shared', 1, '00000000-0000-4000-8000-000000000011', 2, 'reader 1', 21, 30000, 0, 0, '2026-01-02 03:04:00Z',
     '2026-01-02 03:04:30Z', null, 0, 0, null),
    ('shared', 3, '00000000-0000-4000-8000-000000000012', 2, 'reader 2', 21, 0, 5000, 86400000, '2026-01-02 03:04:01Z',
     '2026-01-02 03:04:31Z', '{"x":"y"}', 18, 0, null),
    ('permits', 1, '00000000-0000-4000-8000-000000000021', 3, 'permit 1', 22, 30000, 1000, 0, '2026-01-02 03:04:02Z',
     '2026-01-02 03:04:32Z', null, 0, 0, null),
    ('permits', 2, '00000000-0000-4000-8000-000000000022', 3, 'permit 2', 23, 30000, 0, 0, '2026-01-02 03:04:03Z',
     '2026-01-02 03:04:33Z', '{}', 6, 88, '2026-01-02 03:04:12Z');

-- Waiters: attached, detached, and granted but unclaimed.
insert into paddock.waiters (name, place, lease_id, mode, capacity, holder, ttl_ms, grace_ms, max_hold_ms, metadata, joined_at,
                             attachment, replica, until, alive_until, kept_until, offered)
values
    ('shared', 19, '00000000-0000-4000-8000-000000000031', 1, 0, 'writer 1', 30000, 0, 0, null, '2026-01-02 03:04:20Z',
     101, 201, '2026-01-02 03:05:10Z', '2026-01-02 03:04:22Z', '2026-01-02 03:05:20Z', false),
    ('shared', 20, '00000000-0000-4000-8000-000000000032', 1, 0, 'writer 2', 20000, 500, 40000, '{"w": 1}',
     '2026-01-02 03:04:21.000004Z', 0, 0, '2026-01-02 03:04:22Z', '2026-01-02 03:04:22Z', '2026-01-02 03:04:32.000005Z', false),
    ('permits', 6, '00000000-0000-4000-8000-000000000022', 3, 3, 'permit 2', 30000, 0, 0, '{}', '2026-01-02 03:04:02Z',
     88, 201, '2026-01-02 03:04:52Z', '2026-01-02 03:04:12Z', '2026-01-02 03:05:02Z', true),
    ('permits', 8, '00000000-0000-4000-8000-000000000023', 3, 3, 'permit 3', 30000, 0, 0, null, '2026-01-02 03:04:04Z',
     0, 0, '2026-01-02 03:04:05Z', '2026-01-02 03:04:05Z', '2026-01-02 03:04:15Z', false),
    ('unclaimed', 2, '00000000-0000-4000-8000-000000000004', 1, 0, 'worker 3', 30000, 0, 0, null, '2026-01-02 03:04:05Z',
     77, 202, '2026-01-02 03:04:55Z', '2026-01-02 03:04:09Z', '2026-01-02 03:05:05Z', true);

-- Events. Those of 'gone', a lock that was pruned and used again, are in rows 0, 1 and 2; those of 'free' everywhere. Ids
-- have gaps, and times can go back.
insert into paddock.events (id, at, name, slot, revision, kind, token, holder, mode, reason, place)
select id, '2026-01-02 03:00:00Z'::timestamptz + id * interval '1003 microseconds', 'free', 0, n,
       1 + (n - 1) % 2, 1 + n / 2, 'worker', 1, '', 0
from generate_series(1, 34) n, lateral (select (n * 400)::bigint as id) i;
insert into paddock.events (id, at, name, slot, revision, kind, token, holder, mode, reason, place, lease_ref)
values
    (2, '2026-01-02 03:00:01Z', 'gone', 0, 1, 1, 2, 'first', 1, '', 0, null),
    (3, '2026-01-02 02:59:59Z', 'gone', 0, 2, 3, 2, 'first', 1, '', 0, 1003),
    (4095, '2026-01-02 03:01:00Z', 'gone', 0, 1, 5, 0, E'quote " \\ ü 漢', 3, '', 1, null),
    (4096, '2026-01-02 03:01:01Z', 'gone', 0, 2, 6, 0, E'quote " \\ ü 漢', 3, 'timeout', 1, 9223372036854775807),
    (4097, '2026-01-02 03:01:02Z', 'gone', 2, 3, 7, 6, 'third', 3, 'unclaimed', 4, null),
    (8191, '2026-01-02 03:01:03Z', 'held:all', 0, 4999999999, 1, 9007199254740000, E'quote " back \\ ü 漢', 1, '', 7, null),
    (8192, '2026-01-02 03:01:04Z', 'held:all', 0, 5000000000, 8, 9007199254740000, E'quote " back \\ ü 漢', 1, '', 0, null),
    (8193, '2026-01-02 03:01:05Z', 'revoked', 0, 3, 4, 13, 'worker 2', 1, E'an operator said "no"', 0, 1013),
    (13601, '2026-01-02 03:01:06Z', 'shared', 3, 16, 4, 21, 'reader 2', 2, 'stuck', 0, 1012),
    (13602, '2026-01-02 03:01:07Z', E'"ünï\\', 0, 1, 3, 15, 'x', 1, '', 0, 1015);
select setval('paddock.event_ids', 13700), setval('paddock.fencing_tokens', 9007199254740000);
