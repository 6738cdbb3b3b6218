-- The newest epoch, how often the policy was changed in it, the policy as it is now, and the database's clock. Instants are in microseconds
-- since 1970.
select epoch, policy, array(select root from paddock.trees),
       (select coalesce(json_agg(json_build_object(
                   'scope', scope, 'reason', reason, 'by', frozen_by, 'at', (extract(epoch from frozen_at) * 1000000)::bigint,
                   'until', (extract(epoch from until) * 1000000)::bigint)), '[]')
        from paddock.freezes),
       (select coalesce(json_agg(json_build_object(
                   'scope', scope, 'ttl', max_ttl_ms, 'hold', max_hold_ms, 'grace', min_grace_ms, 'capacity', capacity,
                   'leases', max_leases, 'by', set_by, 'at', (extract(epoch from set_at) * 1000000)::bigint)), '[]')
        from paddock.rules),
       (select coalesce(json_agg(json_build_object(
                   'name', name, 'position', position, 'takes', takes, 'self', self, 'generation', generation) order by position), '[]')
        from paddock.cells),
       (select coalesce(json_agg(json_build_object(
                   'group', group_name, 'cell', cell, 'generation', generation, 'state', state, 'pinned', pinned)), '[]')
        from paddock.placement),
       clock_timestamp()
from paddock.epochs
order by epoch desc
limit 1
