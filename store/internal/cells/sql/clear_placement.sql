delete from paddock.placement
