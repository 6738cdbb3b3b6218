-- Writes the decisions of a batch, in one statement: compare and swap. A lock is written if its record is still the
-- row that was decided on, by its ctid and xmin. A record that changed while the statement waited for it is another
-- row, and is left alone. If a record was only locked, and for so long that the decision does not hold any more,
-- decided_too_late fails the statement.
--
-- $1 is the instant of the latest decision, $2 the last one at which they may be written; $3 the start of the server,
-- and $4 to $6 the epoch, its pause and its longest lease, that they were made on; $7 the key of the mark; $8 the
-- number of changes, and $9 the policy of the epoch. The other parameters are the rows of endings, writes, drops, saves,
-- entries and refs, of sessions and losses, an array for each column; or the columns of the only row. ord is the number of a change, from 1 on.
--
-- If $2 is infinite, the rows are locked. If some changes belong together, either all are written or none:
-- decided_too_late undoes the statement. With a single change there is nothing to select, which saves a fourth of the
-- CPU.
--
-- now: what all changes depend on; without a row of it nothing is written. The mark, an advisory lock, tells readers
-- of events that events of batches above it may be missing; it is set before the batch is drawn. The batch has the
-- tokens from 256 times its id on; those that are granted here come as negative numbers, see stored in events.go.
-- ended: changes that rely on a lease that has ended, contrary to what was assumed. offset 0 keeps the look-up one by
-- key: a plan that was made while the table was empty would read all of it. written: a record is found by its
-- name, and its ctid is compared in a way that finds nothing. A row that is found by an index has its page tidied first;
-- one that is found by its ctid has not, so full pages would stay full, and every second update would move its row to
-- another page.
-- alive: the sessions that are relied on, of those that have not ended. Their rows are locked until the commit, after
-- those of the locks: the end of a session waits for grants in it, and a grant that waits for the end is undone.
-- Heartbeats and grants do not wait for each other.
-- touched: these sessions, and those that lose leases, with how many. Their rows are locked in the order of refs, as
-- alive; the lock of one that loses leases waits for heartbeats. counted: each is found by its key, by a comparison
-- that cannot be merged, so no plan reads all sessions.
with now as materialized (
    select clock_timestamp() as at{{if .Events}}, nextval('paddock.event_batch_ids') as batch{{end}}
    from {{if .Events}}(
        select pg_advisory_xact_lock_shared($7::bigint | case when is_called then last_value else 0 end)
        from paddock.event_batch_ids
        offset 0
    ) marked{{else}}(select $7::bigint) unmarked{{end}}
    where clock_timestamp() between $1::timestamptz and $2::timestamptz
      and pg_postmaster_start_time() = $3::timestamptz
      and (select epoch = $4::bigint and closed_until is not distinct from $5::timestamptz and longest_ms >= $6::bigint
              and policy = $9::bigint
              and (not quorum or current_setting('synchronous_standby_names') <> '')
           from paddock.epochs order by epoch desc limit 1)
){{if .Endings}}, ended as materialized (
    select u.ord
    from (select {{.Endings}}) u
    where exists (select from paddock.event_refs k where k.key = u.key offset 0)
){{end}}, written as (
    update paddock.records r
    set {{.RecordAssignments}}{{if .Events}},
        last_event = case when n.has_events then now.batch else r.last_event end{{end}}
    from now
    cross join (select {{.Writes}}, {{if .Single}}$8::integer{{else}}generate_series(1, $8::integer){{end}} as ord) n
    where r.name = n.name and r.ctid is not distinct from n.tid and r.xmin = n.xmin
      and now.at < n.until{{if .Endings}} and n.ord <> all (array(select ord from ended)){{end}}
    returning n.ord, r.ctid as tid, r.xmin as xmin, now.at as now, case when clock_timestamp() >= n.until then paddock.decided_too_late() end{{if .Events}},
              now.batch{{end}}
){{if or .Events .Parts}}, done as {{if .Single}}not materialized (
    select{{if .Events}} batch{{end}}{{else}}materialized (
    select array_agg(ord) as ords, count(*) = $8::integer as whole{{if .Events}}, min(batch) as batch{{end}}{{end}}
    from written
){{end}}{{if .Events}}, logged as (
    insert into paddock.event_batches (id, at, entries)
    {{if .Single}}select done.batch, $1, array[e.entry]
    from done, (select {{.Entries}}) e{{else}}select done.batch, $1, e.entries
    from done
    cross join lateral (
        select array(select entry from (select {{.Entries}}) e where done.whole or ord = any (done.ords)) as entries
    ) e
    where cardinality(e.entries) > 0{{end}}
), refs as (
    insert into paddock.event_refs (key, id)
    select k.key, done.batch * 4096 + k.number
    from done, (select {{.Refs}}) k
{{if not .Single}}    where done.whole or k.ord = any (done.ords)
{{end}}){{end}}{{if .Sessions}}, relied as materialized (
    select {{.Sessions}}
){{end}}{{if .Losses}}, touched as materialized (
    select ref, count(*) > count(ord) as relied_on, count(ord) as losses
    from (
{{if .Sessions}}        select ref, null::integer as ord
        from relied
        where (select count(*) from written) > 0
        union all
{{end}}        select k.ref, k.ord
        from done, (select {{.Losses}}) k
{{if not .Single}}        where done.whole or k.ord = any (done.ords)
{{end}}    ) each
    group by ref
    order by ref
), alive as materialized (
    select t.ref, t.relied_on, t.losses
    from touched t
    cross join lateral (
{{if .Sessions}}        select
        from (select from paddock.sessions where ref = t.ref and ended = 0 and t.losses = 0 for key share) shared
        union all
{{end}}        select
        from (select from paddock.sessions where ref = t.ref and ended = 0 and t.losses > 0 for no key update) own
    ) locked
), counted as (
    update paddock.sessions s
    set revoked_leases = s.revoked_leases + alive.losses
    from alive
    where s.ref = any (array[alive.ref]) and alive.losses > 0
){{else if .Sessions}}, alive as materialized (
    select ref
    from paddock.sessions
    where ref = any (array(select ref from relied)) and ended = 0 and (select count(*) from written) > 0
    order by ref
    for key share
){{end}}{{if .Parts}}, dropped as (
    delete from paddock.parts p
    using done, (select {{.Drops}}) d
    where {{if not .Single}}(done.whole or d.ord = any (done.ords)) and {{end}}p.name = d.name and p.slot = d.slot and p.place = d.place
), saved as (
    insert into paddock.parts ({{.Part}})
    select {{.SavedPart}}
    from done, (select {{.Saves}}) s
{{if not .Single}}    where done.whole or s.ord = any (done.ords)
{{end}}    on conflict (name, slot, place) do update
    set {{.PartAssignments}}
){{end}}
select ord, tid, xmin, now{{if .Events}}, batch{{else}}, 0::bigint{{end}}
from written{{if .Sessions}}
where case when (select count(*) from alive{{if .Losses}} where relied_on{{end}}) = (select count(distinct ref) from relied) then true else paddock.decided_too_late() end{{end}}{{if .AllOrNone}}
{{if .Sessions}}  and{{else}}where{{end}} case when (select count(*) from written) = $8::integer then true else paddock.decided_too_late() end{{end}}
