package faults_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
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
