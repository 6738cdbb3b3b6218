package main

import (
	"time"

	"github.com/paddock-lock/paddock/bench/workload"
)

// A part measures some systems, which run at the same time, under some workloads.
type part struct {
	title              string
	systems, workloads string // separated by commas
	clients            []int
	seconds, warmup    float64
	rounds             int
}

// workloads returns the workloads by name. A name that supports any number of clients stands for one workload for each
// number given.
func (s *settings) workloads(clients []int) map[string][]workload.Workload {
	return map[string][]workload.Workload{
		"distinct":  each(clients, workload.Distinct),
		"contended": {workload.Contended(s.size(32, 4))},
		"queue":     {workload.Queues(s.size(1000, 20), s.size(100, 5))},
		"renew":     {workload.Renewals(s.size(10_000, 400), s.size(50, 4))},
		"renew-max": {workload.Renew(s.size(64, 4))},
		"heartbeat": {workload.Heartbeats()},
		"batch":     {workload.Batches(s.size(8, 2), s.size(100, 10))},
		"growth":    {workload.Growth(s.size(64, 4))},
		"beside":    {workload.BesideJoins(s.size(50, 4), 0, 0), workload.BesideJoins(s.size(50, 4), s.size(9_900, 20), time.Duration(s.size(60, 0))*time.Second)},
		"idle":      {workload.Idle()},
	}
}

func each(clients []int, make func(int) workload.Workload) []workload.Workload {
	var all []workload.Workload
	for _, n := range clients {
		all = append(all, make(n))
	}
	return all
}

// fullPlan returns the parts of docs/benchmarks.md.
func fullPlan(rounds int) []part {
	return []part{
		{title: "Side by side", systems: "peers", workloads: "distinct,contended", clients: []int{1, 16, 64, 256}, seconds: 1.5, warmup: 0.5, rounds: rounds},
		{title: "Two replicas", systems: "paddock,paddock-2", workloads: "distinct,contended", clients: []int{64}, seconds: 2, warmup: 1, rounds: rounds},
		{title: "Many leases, many waiters", systems: "paddock,paddock-sdk,noop", workloads: "renew-max,batch,queue", seconds: 2, warmup: 1, rounds: rounds},
		{title: "Ten thousand leases", systems: "paddock,paddock-sdk,paddock-guards,noop", workloads: "renew", seconds: 10, warmup: 1, rounds: 1},
		{title: "Growth", systems: "paddock-1k,paddock-100k,paddock-1m", workloads: "growth", seconds: 3, warmup: 1, rounds: rounds},
		{title: "While events are pruned", systems: "paddock-100k,paddock-events", workloads: "growth", seconds: 3, warmup: 1, rounds: 2},
		{title: "Sessions", systems: "paddock-session,paddock-session-10k", workloads: "heartbeat", seconds: 3, warmup: 1, rounds: rounds},
		{title: "Renewals beside joins", systems: "paddock", workloads: "beside", seconds: 10, warmup: 2, rounds: 1},
		{title: "Subscribers", systems: "paddock,paddock-streams-one,paddock-streams", workloads: "distinct", clients: []int{64}, seconds: 3, warmup: 1, rounds: rounds},
		{title: "Cells", systems: "paddock,paddock-cell,paddock-cells", workloads: "distinct", clients: []int{64, 512}, seconds: 3, warmup: 1, rounds: 2 * rounds},
		{title: "Idle", systems: "paddock-1k,paddock-100k", workloads: "idle", seconds: 60, warmup: 5, rounds: 1},
	}
}

// smokePlan returns the same parts for a moment each.
func smokePlan() []part {
	parts := fullPlan(1)
	for i := range parts {
		parts[i].clients, parts[i].seconds, parts[i].warmup, parts[i].rounds = []int{8}, 0.1, 0.02, 1
	}
	return parts
}
