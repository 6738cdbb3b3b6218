-- A lock's time does not run backwards, so one that changed in the future would stand still.
update paddock.locks set changed_at = $1 where changed_at > $1
