-- At most $1 sessions about which something is to be done, those that ended first: they are over and not ended, or
-- ended and not cleared, with leases or waiters that are left, or longer than $3 ago. $2 is the expires_at of
-- the leases of sessions.
select s.ref
from paddock.sessions s
where not s.cleared
  and case
      when s.ended = 0 then s.expires_at + s.grace_ms * interval '1 millisecond' <= clock_timestamp()
      else s.ended_at < clock_timestamp() - $3::interval
          or exists (select from paddock.records r where r.session = s.ref and r.lease_id is not null and r.expires_at = $2)
          or exists (select from paddock.parts p where p.session = s.ref and (p.place > 0 or p.expires_at = $2))
  end
order by coalesce(s.ended_at, s.expires_at), s.ref
limit $1
