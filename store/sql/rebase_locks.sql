-- Moves changes that are in the future of the new clock to the present: a lock's time never runs backwards, so the
-- lock would stand still.
update paddock.locks set changed_at = $1 where changed_at > $1
