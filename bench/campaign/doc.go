// Package campaign measures several systems under several workloads, in rounds. In each round, a
// workload is run on all systems before the next workload starts, so that runs to be compared are
// close to each other in time.
package campaign
