-- Counts a change, if the policy is still the one after $2 changes in the epoch $1, on the server that started at $3. So
-- each replica reads the policy again before it decides anything more.
    update paddock.epochs
    set policy = policy + 1
    where epoch = $1::bigint and epoch = (select max(epoch) from paddock.epochs) and policy = $2::bigint
      and pg_postmaster_start_time() = $3::timestamptz
