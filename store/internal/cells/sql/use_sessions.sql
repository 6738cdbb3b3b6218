-- Records that the sessions $1 are used in the cells $2, too.
update paddock.sessions set cells = cells | $2::bigint where ref = any ($1::bigint[])
