insert into paddock.event_refs (key, id) select * from unnest($1::bigint[], $2::bigint[]) on conflict do nothing
