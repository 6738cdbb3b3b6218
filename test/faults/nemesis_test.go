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
	weight     int           // how often it comes, compared with others
	component  component     // what it breaks
	allPercent int           // in a hundred times, how often all replicas are its victims; of the others, one is
	duration   durationRange // how long it lasts
	inject     func(context.Context, *deployment, fault) (undoFunc, error)
}

// A component is a part of the deployment. Of faults at the same time no two are in one.
type component string

const (
	replicas        component = "replicas"
	server          component = "PostgreSQL"
	clientNetwork   component = "clients and Paddock"
	databaseNetwork component = "Paddock and PostgreSQL"
)

// A durationRange is from the least time to the most.
type durationRange struct{ least, most time.Duration }

// aboutASecond is for about a second.
var aboutASecond = durationRange{300 * time.Millisecond, 1500 * time.Millisecond}

// A undoFunc undoes what a nemesis did.
type undoFunc func(context.Context) error

// noUndo is the cure for what is over when it is done.
func noUndo(context.Context) error { return nil }

// allNemeses are all there are.
func allNemeses() []nemesis {
	var all []nemesis
	for _, some := range [][]nemesis{replicaNemeses(), serverNemeses(), databaseNemeses(), networkNemeses(clientNetwork), networkNemeses(databaseNetwork)} {
		all = append(all, some...)
	}
	return all
}

// inParallel does n things at once and returns all that went wrong.
func inParallel(n int, do func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// rng returns what the details of the fault are drawn with.
func (f fault) rng() *rand.Rand { return rand.New(rand.NewPCG(f.seed, 0)) }

// each calls do with every replica that the fault is about, at once.
func (f fault) each(d *deployment, do func(*replica) error) error {
	return inParallel(len(d.replicas), func(i int) error {
		if f.target != allReplicas && f.target != i {
			return nil
		}
		return do(d.replicas[i])
	})
}

// A fault is something that a nemesis does once.
type fault struct {
	nemesis
	target   int // the index of a replica, or everybody
	duration time.Duration
	seed     uint64 // of the details
}

const allReplicas = -1

// String says what happens to whom, for how long.
func (f fault) String() string {
	said := f.name
	switch {
	case f.target != allReplicas:
		said += fmt.Sprintf(" (replica %d)", f.target+1)
	case f.allPercent < 100:
		said += " (every replica)"
	}
	if f.duration > 0 {
		said += fmt.Sprint(", for ", f.duration)
	}
	return said
}

// A step is faults at the same time: one, or two in different fields.
type step []fault

func (s step) String() string {
	said := make([]string, len(s))
	for i, f := range s {
		said[i] = f.String()
	}
	return strings.Join(said, "; and ")
}

// schedule draws steps with at least that many faults. The same seed gives the same.
// Every nemesis comes as often as its weight before any comes again.
func schedule(seed uint64, faults int) []step {
	dice := rand.New(rand.NewPCG(seed, 1))
	var steps []step
	var deck []nemesis
	for n := 0; n < faults; {
		if len(deck) == 0 {
			deck = shuffled(dice)
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

func shuffled(dice *rand.Rand) []nemesis {
	var deck []nemesis
	for _, n := range allNemeses() {
		for range n.weight {
			deck = append(deck, n)
		}
	}
	dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

// newFault draws whom the nemesis hits, for how long.
func newFault(dice *rand.Rand, n nemesis) fault {
	f := fault{nemesis: n, target: allReplicas, seed: dice.Uint64()}
	if victim := dice.IntN(len(replicaVariants)); dice.IntN(100) >= n.allPercent {
		f.target = victim
	}
	f.duration = (n.duration.least + time.Duration(dice.Int64N(int64(n.duration.most-n.duration.least)+1))).Truncate(10 * time.Millisecond)
	return f
}

func TestScheduleDependsOnTheSeedOnly(t *testing.T) {
	t.Parallel()
	once, again, other := fmt.Sprint(schedule(1, 200)), fmt.Sprint(schedule(1, 200)), fmt.Sprint(schedule(2, 200))
	if once != again || once == other {
		t.Error("another seed, and nothing else, is to give another schedule")
	}
	if longer := fmt.Sprint(schedule(1, 300)); !strings.HasPrefix(longer, strings.TrimSuffix(once, "]")) {
		t.Error("a longer schedule is to begin as a shorter one does")
	}
}

func TestEveryNemesisIsScheduled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		came := map[string]bool{}
		for _, s := range schedule(seed, roundFaults) {
			for _, f := range s {
				came[f.name] = true
			}
			if len(s) > 1 && s[0].component == s[1].component {
				t.Errorf("two at once in one field: %v", s)
			}
		}
		for _, n := range allNemeses() {
			if !came[n.name] {
				t.Errorf("with the seed %d it never comes that %s", seed, n.name)
			}
		}
	}
}
