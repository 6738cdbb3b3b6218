// Package metrics counts what a replica does, for Prometheus.
//
// No label is a lock's name, a holder or a key: the number of series does not depend on what clients send. Labels have these
// values:
//
//	mode     exclusive, shared, permit
//	outcome  granted, replayed, renewed, released, or the code of the error, as in the API
//	route    the pattern of a route of the API, as in openapi.yaml; "other" for everything else
//	code     the status of the answer, 200 for example
//	end      how a lease ended: released, expired, revoked
//	locks    how a round of a batch knew its locks: cached, read, locked (read with their rows locked)
//	where    where a stale token was shown: write (a fenced write), verify
//
// # Where they come from
//
//	Calls      counts the calls of a lock.Service, each with its outcome
//	Decided    counts what was decided and committed: the leases that have ended
//	Tried      counts the rounds of batches
//	Request    counts the requests of the HTTP API
//
// Histograms have classic buckets, which every Prometheus reads, and native ones, which are finer: a wait for a lock may
// take a millisecond or ten minutes.
package metrics
