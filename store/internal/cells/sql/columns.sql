-- The columns of a table of the schema, in their order.
select string_agg(quote_ident(attname), ', ' order by attnum)
from pg_catalog.pg_attribute
where attrelid = $1::regclass and attnum > 0 and not attisdropped
