-- The sessions $1 as they are written in another cell, which counts the revoked leases by itself, and in which they are used.
select coalesce(json_agg(to_jsonb(s) || jsonb_build_object('revoked_leases', 0, 'cells', cells & 9223372036854775807)), '[]')
from paddock.sessions s
where ref = any ($1::bigint[])
