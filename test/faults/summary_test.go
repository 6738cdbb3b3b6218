package faults_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// A summary is what is told of a round.
type summary struct {
	seed        uint64
	injected    map[string]int // faults by name
	operations  int
	unknown     int
	violations  int
	subscribers workload.SubscriberStats
	lost        int   // commits of which the answer was
	rates       []int // of the calls in the second before each fault, the least first
	took        time.Duration
	longest     time.Duration // until the deployment was under load again
	after       string        // what that was
	settled     time.Duration
}

// add takes over what the history and its checks say.
func (s *summary) add(h verify.History, report verify.Report) {
	s.operations = report.Operations
	for _, c := range report.Checks {
		s.violations += len(c.Violations)
	}
	var answered []time.Duration
	for _, c := range h.Calls {
		switch c.Outcome() {
		case verify.Unknown:
			s.unknown++
		case verify.Done, verify.Refused:
			answered = append(answered, c.Answered)
		}
	}
	slices.Sort(answered)
	upTo := func(at time.Duration) int { n, _ := slices.BinarySearch(answered, at); return n }
	for _, f := range h.Faults {
		s.rates = append(s.rates, upTo(f.At)-upTo(f.At-time.Second))
	}
	slices.Sort(s.rates)
}

// idleFaults is how many faults were injected while hardly anybody asked for anything.
func (s summary) idleFaults() int { n, _ := slices.BinarySearch(s.rates, minRate); return n }

// faults is how many there were.
func (s summary) faults() int { return len(s.rates) }

// check returns an error if the round is worth nothing, or less than a whole one that
// was a whole one.
func (s summary) check() error {
	var err error
	if n := s.idleFaults(); 4*n > s.faults() {
		err = fmt.Errorf("there was hardly any load: before %d of %d faults fewer than %d calls were answered in a second", n, s.faults(), minRate)
	}
	if s.faults() >= roundFaults && (s.operations < roundCalls || s.unknown == 0 || s.lost == 0) {
		err = errors.Join(err, errors.New("the faults have hit too little: see how many operations, unknown outcomes and lost commits there are"))
	}
	return err
}

func (s summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %.0f s: %d operations checked, %d faults of %d kinds injected, %d unknown outcomes met, %d violations\n",
		s.seed, s.took.Seconds(), s.operations, s.faults(), len(s.injected), s.unknown, s.violations)
	fmt.Fprintf(&b, "%v\n", s.subscribers)
	fmt.Fprintf(&b, "%d commits lost their answer on the way from PostgreSQL\n", s.lost)
	if n := s.faults(); n > 0 {
		fmt.Fprintf(&b, "calls answered in the second before a fault: %d at the least, %d in the middle; before %d of %d faults fewer than %d\n",
			s.rates[0], s.rates[n/2], s.idleFaults(), n, minRate)
	}
	fmt.Fprintf(&b, "it took %.1f s at the most to be under load again, after %s\n", s.longest.Seconds(), s.after)
	fmt.Fprintf(&b, "afterwards every replica served, and all was given back after %.1f s\n", s.settled.Seconds())
	s.writeKinds(&b)
	return b.String()
}

// writeKinds writes how often each kind of fault was injected.
func (s summary) writeKinds(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(s.injected)) {
		fmt.Fprintf(w, "%6d  %s\n", s.injected[name], name)
	}
}
