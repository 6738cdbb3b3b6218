-- All trees in the order of their roots, or the one of the root $1.
select root, declared_at
from paddock.trees
where $1::text is null or root = $1
order by root
