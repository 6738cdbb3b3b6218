package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// servers is how many servers there are. In majority voting all of them vote. In Paddock the first also runs the
// database, and the first three run a replica each.
const (
	servers  = 5
	replicas = 3
)

// A Plan holds all faults of a run, and the load as far as it does not depend on what happens. It follows from the
// seed alone, and is the same for every variant.
type Plan struct {
	Seed    uint64
	Workers int
	TTL     time.Duration // of every lease
	Quiet   time.Duration // no faults from then on

	// Probabilities for each message before Quiet.
	Lost, Late, Twice, Cut float64

	Pauses   [][]Interval    // of each worker's process
	Outages  [][]Interval    // of each worker's connection
	Deaths   []time.Duration // when each worker's process dies for good; zero if it does not
	Restarts []Restart
	Clocks   [servers]Clock
	Orders   []Order // where workers use all guards
}

// An Interval is a period with a fault.
type Interval struct {
	From, To time.Duration
	Fault    Fault
}

// A Fault is a kind of fault.
type Fault int

// The faults of intervals. A paused process neither sends nor reads nor sees its timers until it continues.
const (
	Pause    Fault = iota
	Refused        // connections are refused
	Dropped        // what is sent is lost
	NoAnswer       // what is sent arrives, and no answer comes back
)

// A Restart is a server that dies and comes back.
type Restart struct {
	Server   int
	At, Down time.Duration
}

// PlanOf returns the plan of the seed.
func PlanOf(seed uint64) Plan {
	rnd := newRNG(seed, "plan")
	p := Plan{Seed: seed, Workers: 3 + rnd.IntN(3), TTL: oneOf(rnd, time.Second, 3*time.Second, 10*time.Second, 30*time.Second)}
	p.Quiet = 8*p.TTL + 10*time.Second
	if rnd.IntN(3) > 0 {
		p.Lost, p.Late = oneOf(rnd, 0, 0.01, 0.05), oneOf(rnd, 0, 0.01, 0.03)
		p.Twice, p.Cut = oneOf(rnd, 0, 0.02, 0.05), oneOf(rnd, 0, 0.05, 0.2)
	}
	pauses, outages, restarts, steps := rnd.IntN(2), rnd.IntN(2), rnd.IntN(2), rnd.IntN(3)/2
	for range p.Workers {
		p.Pauses = append(p.Pauses, p.spans(rnd, 10*pauses, Pause))
		p.Outages = append(p.Outages, p.spans(rnd, 3*outages, Refused, Dropped, NoAnswer))
	}
	p.Deaths = p.deaths(newRNG(seed, "deaths"))
	for server := range servers * restarts {
		for _, s := range p.spans(rnd, 3, Pause) {
			p.Restarts = append(p.Restarts, Restart{server, s.From, s.To - s.From})
		}
	}
	for i := range p.Clocks {
		p.Clocks[i] = p.clock(rnd, rnd.IntN(2)*steps)
	}
	p.Orders = p.orders(newRNG(seed, "operator"))
	return p
}

// deaths kills one worker for good in half of the runs.
func (p Plan) deaths(rnd *rand.Rand) []time.Duration {
	deaths := make([]time.Duration, p.Workers)
	if worker := rnd.IntN(p.Workers); rnd.IntN(2) == 0 {
		deaths[worker] = p.instant(rnd)
	}
	return deaths
}

// Survivors returns how many workers do not die.
func (p Plan) Survivors() int {
	survivors := 0
	for _, at := range p.Deaths {
		if at == 0 {
			survivors++
		}
	}
	return survivors
}

// instant returns a random time at which faults happen.
func (p Plan) instant(rnd *rand.Rand) time.Duration { return randomDuration(rnd, p.Quiet*9/10) }

// spans returns up to that many disjoint intervals, in time order.
func (p Plan) spans(rnd *rand.Rand, most int, faults ...Fault) []Interval {
	var spans []Interval
	at := time.Duration(0)
	for range most {
		s := Interval{From: at + randomDuration(rnd, p.Quiet/5), Fault: oneOf(rnd, faults...)}
		s.To = s.From + randomDuration(rnd, oneOf(rnd, p.TTL/4, 3*p.TTL))
		if s.To > p.Quiet {
			break
		}
		spans, at = append(spans, s), s.To
	}
	return spans
}

// clock returns a clock with the offset and drift that time synchronization leaves, and that many steps.
func (p Plan) clock(rnd *rand.Rand, steps int) Clock {
	c := Clock{Offset: randomDuration(rnd, 100*time.Millisecond) - 50*time.Millisecond, Drift: (rnd.Float64() - 0.5) / 2500}
	for range steps {
		by := randomDuration(rnd, 2*p.TTL)
		c.Steps = append(c.Steps, Step{p.instant(rnd), oneOf(rnd, by, -by)})
	}
	slices.SortFunc(c.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return c
}

// databaseClockIsSteady reports whether the database's clock never steps.
func (p Plan) databaseClockIsSteady() bool { return len(p.Clocks[0].Steps) == 0 }

// stepsBack returns how far the database's clock is put back in all.
func (p Plan) stepsBack() time.Duration {
	back := time.Duration(0)
	for _, s := range p.Clocks[0].Steps {
		back -= min(s.By, 0)
	}
	return back
}

// String describes the faults of the plan.
func (p Plan) String() string {
	return fmt.Sprintf("seed %d: %d workers, leases of %v, trouble until %v; of messages %v%% are lost, %v%% late, %v%% come twice, %v%% of waits are cut",
		p.Seed, p.Workers, p.TTL, p.Quiet, 100*p.Lost, 100*p.Late, 100*p.Twice, 100*p.Cut)
}

// margin is how long before its end the guards treat a lease as lost.
func (p Plan) margin() time.Duration { return p.TTL / 10 }
