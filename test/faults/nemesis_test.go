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
	name   string
	weight int   // how often it comes, compared with others
	field  field // what it breaks
	spread int   // in a hundred times, how often all replicas are its victims; of the others, one is
	hold   span  // how long it lasts
	inject func(context.Context, *deployment, fault) (cure, error)
}

// A field is a part of the deployment. Of faults at the same time no two are in one.
type field string

const (
	replicas  field = "replicas"
	server    field = "PostgreSQL"
	frontLine field = "clients and Paddock"
	backLine  field = "Paddock and PostgreSQL"
)

// A span is from the least time to the most.
type span struct{ least, most time.Duration }

// forASecond is for about a second.
var forASecond = span{300 * time.Millisecond, 1500 * time.Millisecond}

// A cure undoes what a nemesis did.
type cure func(context.Context) error

// nothing is the cure for what is over when it is done.
func nothing(context.Context) error { return nil }

// nemeses are all there are.
func nemeses() []nemesis {
	var all []nemesis
	for _, some := range [][]nemesis{ofReplicas(), ofTheServer(), ofTheDatabase(), ofLines(frontLine), ofLines(backLine)} {
		all = append(all, some...)
	}
	return all
}

// together does n things at once and returns all that went wrong.
func together(n int, do func(i int) error) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// dice returns what the details of the fault are drawn with.
func (f fault) dice() *rand.Rand { return rand.New(rand.NewPCG(f.seed, 0)) }

// each calls do with every replica that the fault is about, at once.
func (f fault) each(d *deployment, do func(*replica) error) error {
	return together(len(d.replicas), func(i int) error {
		if f.victim != everybody && f.victim != i {
			return nil
		}
		return do(d.replicas[i])
	})
}
