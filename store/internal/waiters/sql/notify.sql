-- Sends notifications to all replicas.
select pg_notify('paddock', payload) from unnest($1::text[]) as n (payload)
