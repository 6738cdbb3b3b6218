// Package lease has what stores of leases share that know no queue: a client for one goroutine,
// and waiting by asking again and again.
package lease
