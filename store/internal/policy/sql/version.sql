-- The number of the newest epoch, and how often the policy was changed in it.
select epoch, policy from paddock.epochs order by epoch desc limit 1
