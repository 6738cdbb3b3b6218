-- Ends the pause of grants: an operator knows that no lease was lost. It also removes an end that cannot be read.
update paddock.epochs set closed_until = null, reason = reason || '; opened early: ' || $1::text
where epoch = (select max(epoch) from paddock.epochs)
  and (closed_until > clock_timestamp() or closed_until = '-infinity')
returning epoch
