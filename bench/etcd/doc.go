// Package etcd measures etcd's locks: the mutex of its Go client, and its lock service over the
// JSON gateway.
//
// It runs one member of Debian's etcd-server with the default fsync. Settings that would slow down a
// long run favor etcd: the quota has the greatest recommended value, and nothing is compacted.
//
// A client is a session: a lease of 30 seconds that is kept alive. Each lock is a key under that lease.
// The token of a lock is the revision that created its key.
package etcd
