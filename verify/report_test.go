package verify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestReportCountsCases(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	got := text(t, h.Check(verify.CheckOptions{}))
	for _, want := range []string{"OK: no violations. 150 calls on 20 locks, 118 events, 0 faults.",
		"no lease_id is granted twice  ", " cases"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}

func TestReportNamesSkippedChecks(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	h.Events = nil
	r := h.Check(verify.CheckOptions{})
	if got := text(t, r); strings.Count(got, "not checked: no events were collected") != 14 || !r.OK() {
		t.Errorf("the report is:\n%s", got)
	}
	r = verify.History{Events: []lock.Event{}}.Check(verify.CheckOptions{})
	if got := text(t, r); strings.Count(got, "not checked: no such case") != len(r.Checks) {
		t.Errorf("the report is:\n%s", got)
	}
}

// recordViolation returns a history with an unjustified refusal during a fault, and its report.
func recordViolation(t *testing.T) (verify.History, verify.Report) {
	t.Helper()
	h := recordCorrect(t)
	s := editable{t, &h}
	c := s.call(verify.Acquire, "bob", 0)
	after := s.call(verify.Release, "ann", 0).Answered
	c.Sent, c.Answered = after+1000, after+3000
	h.Faults = []verify.Fault{{Description: "kill -9 of a replica", At: after + 2000}}
	return h, h.Check(verify.CheckOptions{})
}

func TestViolationShowsTheCallWithoutAPlace(t *testing.T) {
	t.Parallel()
	_, r := recordViolation(t)
	got := text(t, r)
	for _, want := range []string{
		"VIOLATED: 1 violation.", "VIOLATED  " + byLinearizable,
		`lock_held by "ann", newest token 1) has no place in any order`,
		"answered  client  via               request", "FAULT: kill -9 of a replica", "events of the lock",
		`released exclusive in slot 0 by "ann"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	for _, c := range r.Checks {
		for _, v := range c.Violations {
			if len(v.Calls) != 1 || v.Lock != exclusiveLock {
				t.Errorf("%d calls of %s are shown", len(v.Calls), v.Lock)
			}
		}
	}
}

func TestShownCallsViolateOnTheirOwn(t *testing.T) {
	t.Parallel()
	h, r := recordViolation(t)
	for _, c := range r.Checks {
		for _, v := range c.Violations {
			h.Calls = v.Calls
			if h.Check(verify.CheckOptions{}).OK() {
				t.Errorf("without the other calls nothing is violated: %s", v.Message)
			}
		}
	}
}

func TestReportContainsNoSecret(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	for i := range h.Calls {
		refuse(&h.Calls[i],
			lock.Error{Code: lock.ErrLeaseLost, Ended: lock.Released, Token: 77, EndedAt: time.Unix(0, 0)})
	}
	r := h.Check(verify.CheckOptions{})
	var page strings.Builder
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	shown, short := text(t, r)+page.String(), 0
	for _, c := range h.Calls {
		a, ok := c.Request.(lock.Acquire)
		if !ok {
			continue
		}
		id := idText(a.LeaseID)
		if strings.Contains(shown, id) || strings.Contains(shown, strings.ReplaceAll(id, "-", "")[:16]) {
			t.Fatal("a lease_id is shown")
		}
		if strings.Contains(shown, id[:8]) {
			short++
		}
	}
	if short == 0 {
		t.Error("no lease_id is shown in short form")
	}
}

func TestVisualizationShowsTheViolatedLock(t *testing.T) {
	t.Parallel()
	h, r := recordViolation(t)
	var page strings.Builder
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<html", "lock_held by", "kill -9 of a replica"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%q is not drawn", want)
		}
	}
	if strings.Contains(page.String(), "reader 1") {
		t.Error("another lock is drawn")
	}
	if err := (verify.Report{}).WriteHTML(&page); err == nil {
		t.Error("an empty report was drawn")
	}
	h.Calls[0].Sent = 0
	if err := recordCorrect(t).Check(verify.CheckOptions{}).WriteHTML(&page); err != nil {
		t.Errorf("a history without violations is not drawn: %v", err)
	}
}
