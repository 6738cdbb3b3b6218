// Package metrics counts what a replica does, for Prometheus.
//
// No label is a lock's name, a holder or a key: the number of series does not depend on what clients send. The
// exception is Names, for a few locks that the operator chose. Labels have these values:
//
//	mode     exclusive, shared, permit
//	outcome  granted, replayed, renewed, released, opened, closed, revoked, or the code of the error, as in the API
//	method   of a request: GET, for example; "other" where no route matches
//	route    the pattern of a route of the API, as in openapi.yaml, or of the pages; "other" where none matches
//	code     the status of the answer, 200 for example
//	end      how a lease ended: released, expired, revoked
//	how      how a lease was lost: expired, revoked
//	state    of locks: free, held, grace; of connections: idle, used
//	task     a background task of the store
//	pool     deciding (connections for commands), rest
//	locks    how a round of a batch knew its locks: cached, read, locked (read with their rows locked)
//	cell     the name of the database, where a deployment has several; otherwise no metric has the label
//	where    where a stale token was shown: write (a fenced write), verify, report
//
// # Where they come from
//
//	Metrics    is the observe.Observer of the replica: it counts requests, calls, decisions, hand-offs and rounds,
//	           and notes when background tasks have succeeded
//	Store      reads the store's own state at each scrape, with the number of locks in each state
//	Names      reads a few locks at each scrape
//
// The numbers of locks and waiters are of the whole database, so each replica has the same: take the greatest, not the
// sum.
//
// Histograms have classic buckets, which every Prometheus reads, and native ones, which are finer: a wait for a lock
// may take a millisecond or ten minutes.
package metrics
