package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

// A nemesis is a way to break something.
type nemesis struct {
	name       string
	weight     int           // relative frequency
	component  component     // component that it breaks
	allPercent int           // percentage of faults that hit all replicas; the others hit one
	duration   durationRange // range of durations
	inject     func(context.Context, *deployment, fault) (undoFunc, error)
}

// A component is a part of the deployment. Concurrent faults are in different components.
type component string

const (
	replicas        component = "replicas"
	server          component = "PostgreSQL"
	clientNetwork   component = "clients and Paddock"
	databaseNetwork component = "Paddock and PostgreSQL"
)

// A durationRange is the range from least to most.
type durationRange struct{ least, most time.Duration }

var aboutASecond = durationRange{300 * time.Millisecond, 1500 * time.Millisecond}

// An undoFunc undoes what a nemesis did.
type undoFunc func(context.Context) error

// noUndo is for a fault that needs no undoing.
func noUndo(context.Context) error { return nil }

// allNemeses returns every nemesis.
func allNemeses() []nemesis {
	var all []nemesis
	for _, some := range [][]nemesis{replicaNemeses(), serverNemeses(), databaseNemeses(),
		networkNemeses(clientNetwork), networkNemeses(databaseNetwork)} {
		all = append(all, some...)
	}
	return all
}

// inParallel calls do n times concurrently and returns all errors.
func inParallel(n int, do func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// rng returns the generator for the details of the fault.
func (f fault) rng() *rand.Rand { return rand.New(rand.NewPCG(f.seed, 0)) }

// each calls do concurrently for every replica that the fault hits.
func (f fault) each(d *deployment, do func(*replica) error) error {
	return inParallel(len(d.replicas), func(i int) error {
		if f.target != allReplicas && f.target != i {
			return nil
		}
		return do(d.replicas[i])
	})
}

// A fault is one application of a nemesis.
type fault struct {
	nemesis
	target   int // index of a replica, or allReplicas
	duration time.Duration
	seed     uint64 // for the details
}

const allReplicas = -1

// String describes the fault.
func (f fault) String() string {
	text := f.name
	switch {
	case f.target != allReplicas:
		text += fmt.Sprintf(" (replica %d)", f.target+1)
	case f.allPercent < 100:
		text += " (every replica)"
	}
	if f.duration > 0 {
		text += fmt.Sprint(", for ", f.duration)
	}
	return text
}

// A step is faults at the same time: one, or two in different components.
type step []fault

func (s step) String() string {
	text := make([]string, len(s))
	for i, f := range s {
		text[i] = f.String()
	}
	return strings.Join(text, "; and ")
}

// schedule draws steps with at least that many faults. It depends on the seed only. At first every nemesis comes once;
// then, again and again, every nemesis comes as often as its weight.
func schedule(seed uint64, faults int) []step {
	dice := rand.New(rand.NewPCG(seed, 1))
	var steps []step
	var deck []nemesis
	for n := 0; n < faults; {
		if len(deck) == 0 {
			deck = shuffled(dice, len(steps) > 0)
		}
		s := step{newFault(dice, deck[0])}
		deck = deck[1:]
		if len(deck) > 0 && deck[0].component != s[0].component && dice.IntN(4) == 0 {
			s = append(s, newFault(dice, deck[0]))
			deck = deck[1:]
		}
		steps = append(steps, s)
		n += len(s)
	}
	return steps
}

// shuffled returns the nemeses in any order, weighted or each once.
func shuffled(dice *rand.Rand, weighted bool) []nemesis {
	var deck []nemesis
	for _, n := range allNemeses() {
		copies := 1
		if weighted {
			copies = n.weight
		}
		for range copies {
			deck = append(deck, n)
		}
	}
	dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// newFault draws the target and the duration.
func newFault(dice *rand.Rand, n nemesis) fault {
	f := fault{nemesis: n, target: allReplicas, seed: dice.Uint64()}
	if victim := dice.IntN(len(replicaVariants)); dice.IntN(100) >= n.allPercent {
		f.target = victim
	}
	f.duration = (n.duration.least +
		time.Duration(dice.Int64N(int64(n.duration.most-n.duration.least)+1))).Truncate(10 * time.Millisecond)
	return f
}

func TestScheduleDependsOnTheSeedOnly(t *testing.T) {
	t.Parallel()
	once, again, other := fmt.Sprint(schedule(1, 200)), fmt.Sprint(schedule(1, 200)), fmt.Sprint(schedule(2, 200))
	if once != again || once == other {
		t.Error("the schedule must depend on the seed and on nothing else")
	}
	if longer := fmt.Sprint(schedule(1, 300)); !strings.HasPrefix(longer, strings.TrimSuffix(once, "]")) {
		t.Error("a longer schedule must begin like a shorter one")
	}
}

func TestEveryNemesisIsScheduled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		came := map[string]bool{}
		for _, s := range schedule(seed, len(allNemeses())) {
			for _, f := range s {
				came[f.name] = true
			}
			if len(s) > 1 && s[0].component == s[1].component {
				t.Errorf("two concurrent faults in one component: %v", s)
			}
		}
		for _, n := range allNemeses() {
			if !came[n.name] {
				t.Errorf("seed %d never injects: %s", seed, n.name)
			}
		}
	}
}
