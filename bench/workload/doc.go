// Package workload contains the workloads, which are the same for all systems: acquiring and releasing
// locks, handing one over, holding and renewing many. Each run also checks that no lock has two holders
// and that tokens increase with each grant.
//
// A client runs one step after another, as fast as it gets answers. The warm-up at the start is not
// counted.
package workload
