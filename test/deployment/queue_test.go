package deployment_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// TestTwoHundredWaitersAreServedInOrder, and each is woken once: the replicas have logged exactly the promotions of the
// events.
func TestTwoHundredWaitersAreServedInOrder(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t), "--log-level=debug")
	release := s.hold()
	callers := s.enqueue(200, s.replicas...)
	for i, c := range callers {
		c.startUsing(s.replicas[i/2%2])
	}
	release()

	var want, got []int64
	for _, e := range s.expectOrder(callers, verify.Rules{}) {
		if e.Kind == lock.Granted && e.Place != 0 {
			want = append(want, e.Place)
		}
	}
	for _, r := range s.replicas {
		for line := range strings.Lines(r.Stderr.String()) {
			var said struct{ Place int64 }
			if strings.Contains(line, `"msg":"promoted"`) {
				s.must(json.Unmarshal([]byte(line), &said))
				got = append(got, said.Place)
			}
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) || len(want) != len(callers) {
		t.Fatalf("promotions in the logs:\n%v\nin the events:\n%v", got, want)
	}
}
