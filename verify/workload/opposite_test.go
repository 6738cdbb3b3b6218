package workload_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// TestAFewClientsWaitInCircles, by the tasks of the recorded calls, and each circle is found to be one.
func TestAFewClientsWaitInCircles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, rec := memlock.New(), verify.NewRecorder()
		stats, err := workload.Run(t.Context(), rec, workload.Options{Services: twoReplicas(m), Prefix: "verify",
			Operations: soak.Rounds(8000, 20_000), Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		h := rec.History()
		if h.Events, err = verify.Collect(t.Context(), m.Replica(1), "verify:"); err != nil {
			t.Fatal(err)
		}
		r := h.Check(verify.CheckOptions{AllowOvertaking: true})
		var text strings.Builder
		if err := r.WriteText(&text); err != nil || !r.OK() {
			t.Errorf("%v: %s", err, text.String())
		}
		refused, _ := casesOf(r, "only calls in a circle are refused with deadlock")
		if refused < 3 || refused != stats.Calls[verify.Acquire]["deadlock"] {
			t.Errorf("%d calls were refused with deadlock; %d were examined", stats.Calls[verify.Acquire]["deadlock"], refused)
		}
		tasks, parts := 0, 0
		for _, c := range h.Calls {
			a, ok := c.Request.(lock.Acquire)
			if !ok || a.Task == "" {
				if errors.Is(c.Err, lock.ErrDeadlock) {
					t.Errorf("a call without a task was refused with deadlock: %v", c.Err)
				}
				continue
			}
			if tasks++; strings.HasSuffix(string(a.Task), ".second") {
				parts++
			}
		}
		t.Logf("%d calls in %v, of which %d acquires have a task, %d wait under another lease, and %d are refused with deadlock",
			stats.Total(), stats.Took, tasks, parts, refused)
		if parts < 10 || tasks > stats.Total()/20 {
			t.Errorf("of %d calls, %d acquires have a task, and %d wait under another lease", stats.Total(), tasks, parts)
		}
	})
}
