package engine_test

import (
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestTheFirstDecisionIsWrittenAtOnce: the first token drawn is granted. A swap that missed would have cost it.
func TestTheFirstDecisionIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	e := open(t, pgtest.URL(t))
	out, err := e.Do(t.Context(), acquire("new", lock.Exclusive))
	if err != nil || out.Lease.Token != 1 {
		t.Errorf("granted %+v, %v; want token 1", out.Lease, err)
	}
}
