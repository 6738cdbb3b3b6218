package main

import (
	"github.com/paddock-lock/paddock/bench/workload"
)

// A plan says what to measure, in parts. The systems of a part run at the same time.
type plan struct {
	parts []part
	kinds workloadsFor
}

// A part measures some systems under some workloads.
type part struct {
	title              string
	systems, workloads string // separated by commas
	clients            []int
	seconds, warmup    float64
	rounds             int
}

// A workloadsFor function returns the workloads by name. A name that supports any number of clients
// stands for one workload for each number given.
type workloadsFor func(clients []int) map[string][]workload.Workload

// fullWorkloads returns the workloads in docs/benchmarks.md.
func fullWorkloads(clients []int) map[string][]workload.Workload {
	return map[string][]workload.Workload{
		"distinct":  each(clients, workload.Distinct),
		"contended": {workload.Contended(32)},
		"queue":     {workload.Queues(1000, 100)},
		"renew":     {workload.Renewals(10_000, 50)},
		"renew-max": {workload.Renew(64)},
		"mix":       {workload.Mix(64)},
		"batch":     {workload.Batches(8, 100)},
		"growth":    {workload.Growth(64)},
		"beside":    {workload.BesideJoins(50, 0), workload.BesideJoins(50, 9_900)},
	}
}

// smallWorkloads returns the same workloads with few clients.
func smallWorkloads(clients []int) map[string][]workload.Workload {
	return map[string][]workload.Workload{
		"distinct":  each(clients, workload.Distinct),
		"contended": {workload.Contended(4)},
		"queue":     {workload.Queues(20, 5)},
		"renew":     {workload.Renewals(400, 4)},
		"renew-max": {workload.Renew(4)},
		"mix":       {workload.Mix(4)},
		"batch":     {workload.Batches(2, 10)},
		"growth":    {workload.Growth(4)},
		"beside":    {workload.BesideJoins(4, 0), workload.BesideJoins(4, 20)},
	}
}

func each(clients []int, make func(int) workload.Workload) []workload.Workload {
	var all []workload.Workload
	for _, n := range clients {
		all = append(all, make(n))
	}
	return all
}

// fullPlan returns the plan for docs/benchmarks.md.
func fullPlan(rounds int) plan {
	return plan{kinds: fullWorkloads, parts: []part{
		{title: "Side by side", systems: "peers", workloads: "distinct,contended", clients: []int{1, 16, 64, 256}, seconds: 1.5, warmup: 0.5, rounds: rounds},
		{title: "Two replicas", systems: "paddock,paddock-2", workloads: "distinct,contended", clients: []int{64}, seconds: 2, warmup: 1, rounds: rounds},
		{title: "Many leases, many waiters", systems: "paddock,paddock-sdk,noop", workloads: "renew-max,mix,batch,queue", seconds: 2, warmup: 1, rounds: rounds},
		{title: "Ten thousand leases", systems: "paddock,paddock-sdk,paddock-guards,noop", workloads: "renew", seconds: 10, warmup: 1, rounds: 1},
		{title: "Renewals beside joins", systems: "paddock", workloads: "beside", seconds: 10, warmup: 2, rounds: 1},
		{title: "Growth", systems: "paddock-1k,paddock-100k,paddock-1m", workloads: "growth", seconds: 3, warmup: 1, rounds: rounds},
		{title: "While events are pruned", systems: "paddock-100k,paddock-events", workloads: "growth", seconds: 3, warmup: 1, rounds: 2},
	}}
}

// smokePlan returns a short plan with every system and every workload.
func smokePlan() plan {
	const short, shorter = 0.1, 0.02
	return plan{kinds: smallWorkloads, parts: []part{
		{systems: "peers", workloads: "distinct,contended,queue,renew,renew-max,mix,batch", clients: []int{8}, seconds: short, warmup: shorter, rounds: 1},
		{systems: "paddock-2", workloads: "distinct,contended", clients: []int{8}, seconds: short, warmup: shorter, rounds: 1},
		{systems: "paddock", workloads: "beside", seconds: short, warmup: shorter, rounds: 1},
		{systems: "paddock-1k,paddock-events", workloads: "growth", seconds: short, warmup: shorter, rounds: 1},
	}}
}
