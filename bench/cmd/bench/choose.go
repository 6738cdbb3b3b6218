package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/bench/noop"
	"github.com/paddock-lock/paddock/bench/paddock"
	"github.com/paddock-lock/paddock/bench/pgbench"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/rivals"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/bench/workload"
)

// everySystem is those that can be measured, in the order in which they are. Those of Paddock
// that differ by their clients share a deployment.
func (s *settings) everySystem() []system.System {
	one, two := s.deployment(1), s.deployment(2)
	paddocks := []system.System{
		&paddock.HTTP{Deployment: one, Called: "paddock", Titled: "Paddock, HTTP"},
		&paddock.SDK{Deployment: one, Called: "paddock-sdk", Titled: "Paddock, Go SDK"},
		paddock.Guards{SDK: &paddock.SDK{Deployment: one, Called: "paddock-guards", Titled: "Paddock, Go SDK, guards"}},
		&paddock.HTTP{Deployment: two, Called: "paddock-2", Titled: "Paddock, HTTP, two replicas"},
		s.grown("paddock-1k", 1000, 0),
		s.grown("paddock-100k", 100_000, 0),
		s.grown("paddock-1m", 1_000_000, 0),
		s.grown("paddock-10m", 10_000_000, 0),
		s.grown("paddock-events", 100_000, s.events),
	}
	return append(paddocks, peers()...)
}

// peers are the systems that are not Paddock.
func peers() []system.System {
	return append([]system.System{&noop.System{}, &pgbench.System{}}, rivals.Systems()...)
}

func (s *settings) deployment(replicas int) *paddock.Deployment {
	return &paddock.Deployment{Binary: s.paddock, Flags: strings.Fields(s.paddockFlags), Replicas: replicas, Keep: s.keep}
}

// grown is Paddock with so many locks and events from before.
func (s *settings) grown(name string, locks, events int) *paddock.Grown {
	if s.tiny {
		locks, events = locks/100+100, events/1000
	}
	g := &paddock.Grown{Locks: locks, Events: events, Raw: s.raw}
	g.Deployment, g.Called = s.deployment(1), name
	g.Titled = fmt.Sprintf("Paddock, HTTP, %s locks", result.Grouped(locks))
	if events > 0 {
		g.Titled += fmt.Sprintf(", %s events to prune", result.Grouped(events))
	}
	return g
}

// choose makes the systems of a part, and its workloads.
func (s *settings) choose(p part, kinds kindsOf) ([]system.System, []workload.Workload, error) {
	systems, err := s.chooseSystems(p.systems)
	if err != nil {
		return nil, nil, err
	}
	workloads, err := chooseWorkloads(p, kinds)
	return systems, workloads, err
}

func (s *settings) chooseSystems(names string) ([]system.System, error) {
	every := s.everySystem()
	var chosen []system.System
	for _, name := range list(names) {
		switch i := slices.IndexFunc(every, func(s system.System) bool { return s.Name() == name }); {
		case i >= 0:
			chosen = append(chosen, every[i])
		case name == "all":
			chosen = append(chosen, every...)
		case name == "peers": // and Paddock itself
			chosen = append(append(chosen, every[:2]...), peers()...)
		default:
			return nil, fmt.Errorf("there is no system %s; there are all, peers, %s", name, called(every))
		}
	}
	return chosen, nil
}

func called(systems []system.System) string {
	var names []string
	for _, s := range systems {
		names = append(names, s.Name())
	}
	return strings.Join(names, ", ")
}

func chooseWorkloads(p part, kinds kindsOf) ([]workload.Workload, error) {
	every := kinds(p.clients)
	var chosen []workload.Workload
	for _, name := range list(p.workloads) {
		some, ok := every[name]
		if !ok {
			return nil, fmt.Errorf("there is no workload %s; there are %s", name, strings.Join(slices.Sorted(maps.Keys(every)), ", "))
		}
		chosen = append(chosen, some...)
	}
	return chosen, nil
}
