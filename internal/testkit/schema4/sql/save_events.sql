insert into paddock.events (id, at, name, slot, revision, kind, mode, holder, token, reason, place, lease_ref)
select id, at, name, slot, revision, kind, mode, holder, token, reason, place, nullif(lease_ref, 0)
from unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::integer[], $5::bigint[], $6::smallint[],
            $7::smallint[], $8::text[], $9::bigint[], $10::text[], $11::bigint[], $12::bigint[])
    as n (id, at, name, slot, revision, kind, mode, holder, token, reason, place, lease_ref)
