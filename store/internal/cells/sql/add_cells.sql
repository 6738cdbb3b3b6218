-- Writes the cells $1 at the positions $2, which take as $3 says; they are the set of the generation $4. This database is the
-- cell $5.
insert into paddock.cells (name, position, takes, generation, self)
select n.name, n.position, n.takes, $4::bigint, n.name = $5::text
from unnest($1::text[], $2::integer[], $3::boolean[]) as n (name, position, takes)
