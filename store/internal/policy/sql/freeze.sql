-- Freezes the scope $4 for the reason $5, on behalf of the API key $6, for $7; null: without an end. Deletes the freezes
-- that are over. Returns when it began and when it ends; nothing if the policy has changed.
with changed as (
{{.Counted}}
    returning clock_timestamp() as at
), gone as (
    delete from paddock.freezes using changed where until <= changed.at and scope <> $4::text
)
insert into paddock.freezes (scope, reason, frozen_by, frozen_at, until)
select $4::text, $5::text, $6::text, at, at + $7::interval from changed
on conflict (scope) do update
set reason = excluded.reason, frozen_by = excluded.frozen_by, frozen_at = excluded.frozen_at, until = excluded.until
returning frozen_at, until
