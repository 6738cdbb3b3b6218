// Package campaign measures several systems under several workloads, in rounds: in each round
// every system has its run of a workload before the next workload begins, so that what is
// compared was measured in the same moments.
package campaign
