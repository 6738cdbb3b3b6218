package store

import (
	"errors"
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

// TestAGroupTakesItsItemsAllOrNone: those that do not fit are refused as a single call
// is, and those of other groups are done.
func TestAGroupTakesItsItemsAllOrNone(t *testing.T) {
	t.Parallel()
	const places = 3
	run := func(calls []*call) {
		for _, c := range calls {
			c.Answer(outcome{}, nil)
		}
	}
	s := &Store{seed: maphash.MakeSeed(), groups: []*dispatcher{newDispatcher(batch.New(10, places, run)), newDispatcher(batch.New(10, places, run))}}
	var calls []*call
	fits := make(map[*call]bool)
	for i, room := 0, map[*dispatcher]int{s.groups[0]: places, s.groups[1]: places + 1}; room[s.groups[0]]+room[s.groups[1]] > 0; i++ {
		name := fmt.Sprint("jobs:", i)
		if g := s.group(name); room[g] > 0 {
			room[g]--
			c := batch.NewCall[lock.Command, outcome](lock.Release{Name: name})
			calls, fits[c] = append(calls, c), g == s.groups[0]
		}
	}
	s.offer(calls)
	for c, fits := range fits {
		if _, err := answered(c.Wait(t.Context())); fits && err != nil || !fits && !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("a call for which there is room %t: %v", fits, err)
		}
	}
}
