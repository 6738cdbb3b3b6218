// Package etcd measures etcd's locks: the mutex of its Go client, and its lock service over the
// JSON gateway.
//
// One member of Debian's etcd-server, with fsync as it is by default. What would get in a long
// run's way is set in etcd's favour: the quota is at the greatest value that its documentation
// advises, and nothing is compacted, so it never pays for what it has written.
//
// A client is a session: a lease of 30 seconds that is kept alive, under which each lock is a
// key. The token of a lock is the revision that created its key.
package etcd
