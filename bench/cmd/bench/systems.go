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

// allSystems returns all systems in the order in which they are measured. Variants of Paddock that
// differ only in their clients share a deployment.
func (s *settings) allSystems() []system.System {
	one, two := s.deployment(1), s.deployment(2)
	paddocks := []system.System{
		&paddock.HTTP{Deployment: one, SystemName: "paddock", SystemTitle: "Paddock, HTTP"},
		&paddock.SDK{Deployment: one, SystemName: "paddock-sdk", SystemTitle: "Paddock, Go SDK"},
		paddock.Guards{SDK: &paddock.SDK{Deployment: one, SystemName: "paddock-guards", SystemTitle: "Paddock, Go SDK, guards"}},
		&paddock.HTTP{Deployment: two, SystemName: "paddock-2", SystemTitle: "Paddock, HTTP, two replicas"},
		&paddock.Sessions{HTTP: paddock.HTTP{Deployment: one, SystemName: "paddock-session", SystemTitle: "Paddock, a session with 1 lease"}, Leases: 1},
		&paddock.Sessions{HTTP: paddock.HTTP{Deployment: one, SystemName: "paddock-session-10k", SystemTitle: "Paddock, a session with 10,000 leases"}, Leases: s.size(10_000, 100)},
		s.subscribed("paddock-streams-one", "of the locks of one client", "?prefix=distinct-000:"),
		s.subscribed("paddock-streams", "of all events", ""),
		s.prefilled("paddock-1k", 1000, 0),
		s.prefilled("paddock-100k", 100_000, 0),
		s.prefilled("paddock-1m", 1_000_000, 0),
		s.prefilled("paddock-10m", 10_000_000, 0),
		s.prefilled("paddock-events", 100_000, s.events),
	}
	return append(append(paddocks, s.inCells("paddock-cell", "one cell", 1), s.inCells("paddock-cells", "four cells", 4)), peers()...)
}

// inCells returns Paddock with cells.
func (s *settings) inCells(name, title string, cells int) system.System {
	d := s.deployment(1)
	d.Cells = cells
	return paddock.InCells{System: &paddock.HTTP{Deployment: d, SystemName: name, SystemTitle: "Paddock, HTTP, " + title}}
}

// peers returns the systems other than Paddock.
func peers() []system.System {
	return append([]system.System{&noop.System{}, &pgbench.System{}}, rivals.Systems()...)
}

func (s *settings) deployment(replicas int) *paddock.Deployment {
	return &paddock.Deployment{Binary: s.paddock, Flags: strings.Fields(s.paddockFlags), Replicas: replicas}
}

// prefilled returns Paddock with that many old locks and events.
func (s *settings) prefilled(name string, locks, events int) *paddock.Prefilled {
	if s.tiny {
		locks, events = locks/100+100, events/1000
	}
	g := &paddock.Prefilled{Locks: locks, Events: events}
	g.Deployment, g.SystemName = s.deployment(1), name
	g.SystemTitle = fmt.Sprintf("Paddock, HTTP, %s locks", result.Grouped(locks))
	if events > 0 {
		g.SystemTitle += fmt.Sprintf(", %s events to prune", result.Grouped(events))
	}
	return g
}

// subscribed returns Paddock with subscribers.
func (s *settings) subscribed(name, of, query string) *paddock.Subscribed {
	streams := s.size(500, 5)
	g := &paddock.Subscribed{Streams: streams, Query: query}
	g.Deployment, g.SystemName = s.deployment(1), name
	g.SystemTitle = fmt.Sprintf("Paddock, HTTP, %d streams %s", streams, of)
	return g
}

// choose returns the systems and the workloads of a part.
func (s *settings) choose(p part) ([]system.System, []workload.Workload, error) {
	systems, err := s.chooseSystems(p.systems)
	if err != nil {
		return nil, nil, err
	}
	workloads, err := s.chooseWorkloads(p)
	return systems, workloads, err
}

func (s *settings) chooseSystems(names string) ([]system.System, error) {
	every := s.allSystems()
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
			return nil, fmt.Errorf("there is no system %s; use all, peers, or some of %s", name, systemNames(every))
		}
	}
	return chosen, nil
}

func systemNames(systems []system.System) string {
	var names []string
	for _, s := range systems {
		names = append(names, s.Name())
	}
	return strings.Join(names, ", ")
}

func (s *settings) chooseWorkloads(p part) ([]workload.Workload, error) {
	every := s.workloads(p.clients)
	var chosen []workload.Workload
	for _, name := range list(p.workloads) {
		some, ok := every[name]
		if !ok {
			return nil, fmt.Errorf("there is no workload %s; use some of %s", name, strings.Join(slices.Sorted(maps.Keys(every)), ", "))
		}
		chosen = append(chosen, some...)
	}
	return chosen, nil
}
