-- The tables of the schema, and their sizes with indexes in bytes.
select relname::text, pg_total_relation_size(oid) as bytes
from pg_class
where relnamespace = to_regnamespace('paddock') and relkind = 'r'
order by bytes desc, relname
