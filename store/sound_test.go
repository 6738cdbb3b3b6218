package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// TestHistoriesAreSound has three replicas used at random, and checks what they answered: tokens grow, no two holds
// overlap, nothing that has ended comes back.
func TestHistoriesAreSound(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rec, prefix := verify.NewRecorder(), "sound"
	o := workload.Options{Prefix: prefix, Clients: 6, Locks: 6, Operations: 1500, For: time.Minute, TTL: 300 * time.Millisecond, Seed: 5, Tree: true, Hold: true}
	for i := range 3 {
		o.Services = append(o.Services, workload.Replica{Via: fmt.Sprint(i), Locks: open(t, url)})
	}
	if _, err := workload.Run(t.Context(), rec, o); err != nil {
		t.Fatal(err)
	}
	h := rec.History()
	var err error
	if h.Events, err = verify.Collect(t.Context(), o.Services[0].Locks, prefix+":"); err != nil {
		t.Fatal(err)
	}
	if report := h.Check(verify.CheckOptions{AllowOvertaking: true, AllowWaiters: true}); !report.OK() {
		if err := report.WriteText(t.Output()); err != nil {
			t.Error(err)
		}
		t.Error("what was answered cannot be")
	}
}
