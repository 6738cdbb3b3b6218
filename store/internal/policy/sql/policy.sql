-- The newest epoch, how often the trees were changed in it, and the trees as they are now.
select epoch, trees, array(select root from paddock.trees)
from paddock.epochs
order by epoch desc
limit 1
