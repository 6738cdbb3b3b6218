-- The locks of the examples in docs/operations.md.
insert into paddock.records (name, token, revision, last_event, acquired_at, expires_at, ttl_ms, lease_id, parts, mode, holder, rest)
values
    ('backup', 1280, 8, 5, clock_timestamp(), clock_timestamp() + interval '29 minutes 30 seconds', 3600000, gen_random_uuid(), 2,
     1, 'worker 1', null),
    ('free', 768, 2, 0, null, null, null, null, 0, null, null, null),
    ('gpu', 1025, 12, 5, null, null, null, null, 3, null, null, '{"capacity":3}'),
    ('jobs:nightly', 1024, 5, 5, clock_timestamp(), clock_timestamp() - interval '90 seconds', 0, gen_random_uuid(), 0,
     1, 'worker 2', '{"grace":600000}');
insert into paddock.parts (name, slot, place, mode, token, ttl_ms, attachment, replica, acquired_at, expires_at, lease_id, holder, rest)
values
    ('gpu', 1, 0, 3, 770, 7200000, 0, 0, clock_timestamp(), clock_timestamp() + interval '119 minutes 30 seconds', gen_random_uuid(),
     'trainer', '{"place":5}'),
    ('gpu', 3, 0, 3, 1025, 7200000, 0, 0, clock_timestamp(), clock_timestamp() - interval '5 minutes 30 seconds', gen_random_uuid(),
     'renderer', '{"grace":3600000}'),
    ('gpu', 0, 12, 3, 0, 30000, 3, 9, clock_timestamp(), clock_timestamp(), gen_random_uuid(), 'tester', '{"capacity":3}'),
    ('backup', 0, 8, 1, 0, 30000, 2, 9, clock_timestamp(), clock_timestamp(), gen_random_uuid(), 'worker 4', null),
    ('backup', 0, 7, 1, 0, 30000, 0, 0, clock_timestamp(), clock_timestamp(), gen_random_uuid(), 'worker 3', null);
insert into paddock.event_batches (id, at, entries)
values
    (3, clock_timestamp(), array['["jobs:nightly",0,[0,0,1,1,1,"worker 1",769,0,"",0,"workers","k3f9a2xyqw"],[2,0,2,3,1,"worker 1",769,0,"",5]]',
                                 '["free",0,[1,0,2,2,1,"worker 1",768,0,"",0]]']::json[]),
    (4, clock_timestamp(), array['["jobs:nightly",3,[0,0,3,1,1,"worker 2",1024,0,"",0,"workers","k3f9a2xyqw"],
                                 [1,0,4,9,1,"worker 1",769,0,"table invoices",0,"invoices","k7c2m9ppdd",0,"","",1024,12500000,"worker 2"]]']::json[]),
    (5, clock_timestamp(), array['["gpu",0,[0,0,12,5,3,"tester",0,12,"",0]]',
                                 '["jobs:nightly",4,[1,0,5,4,1,"worker 2",1024,0,"host is dead",0,"ops-anna","k1a4t0rzze"]]']::json[]);
