package engine_test

import (
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// TestTheFirstDecisionIsWrittenAtOnce: the first row of events has the grant. A swap that missed would have drawn it.
func TestTheFirstDecisionIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	e := open(t, pgtest.URL(t))
	out, err := e.Do(t.Context(), acquire("new", lock.Exclusive))
	if err != nil || out.Lease.Token != row.TokensPerBatch {
		t.Errorf("granted %+v, %v; want the first token of the first row", out.Lease, err)
	}
}
