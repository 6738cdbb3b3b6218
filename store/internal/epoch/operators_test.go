package epoch

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

func TestOperatorStartsAnEpochAndOpensIt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.exec("update paddock.epochs set longest_ms = 60000, quorum = true")
	const above = 7_000_000_000_000
	if err := Begin(t.Context(), h.url, "", "put back to yesterday", above); err != nil {
		t.Fatal(err)
	}
	all, now, err := List(t.Context(), h.url, "")
	if err != nil || len(all) != 2 {
		t.Fatalf("the epochs are %+v, %v", all, err)
	}
	e := all[1]
	if e.Number != 2 || e.Reason != "put back to yesterday" || e.MaxLease != time.Minute || !e.Quorum {
		t.Errorf("the second epoch is %+v", e)
	}
	if pause := e.GrantsPausedUntil.Sub(e.BeganAt); pause < time.Minute || !e.GrantsPausedUntil.After(now) {
		t.Errorf("grants are paused for %v, although there is a quorum, want a minute", pause)
	}
	if e.System != all[0].System || e.Timeline != all[0].Timeline || len(e.Timeline) != 8 {
		t.Errorf("the server changed: %+v", all)
	}
	if token := int64(FirstToken(h.number("select nextval('paddock.event_batch_ids')"))); token <= above+int64(lock.TokenJump) {
		t.Errorf("the next token is %d, not far above %d", token, int64(above))
	}
	if opened, err := Open(t.Context(), h.url, "", "all holders are stopped"); err != nil || !opened {
		t.Fatalf("opened %t, %v", opened, err)
	}
	if e := h.read(); !e.ClosedUntil.IsZero() {
		t.Errorf("grants are still paused until %v", e.ClosedUntil)
	}
	if opened, err := Open(t.Context(), h.url, "", "again"); err != nil || opened {
		t.Errorf("opened again: %t, %v", opened, err)
	}
	if all, _, err := List(t.Context(), h.url, ""); err != nil ||
		all[1].Reason != "put back to yesterday; opened early: all holders are stopped" {
		t.Errorf("the epochs are %+v, %v", all, err)
	}
}

func TestGreatestTokenThatAnEpochCanContinueAbove(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if err := Begin(t.Context(), h.url, "", "almost at the end", MaxAbove+128*TokensPerBatch); err == nil {
		t.Error("tokens jumped beyond the greatest one that is allowed")
	}
	h.epochs(1)
	if err := Begin(t.Context(), h.url, "", "almost at the end", MaxAbove-TokensPerBatch); err != nil {
		t.Fatal(err)
	}
	const room = 64 * TokensPerBatch
	if last := FirstToken(h.number("select nextval('paddock.event_batch_ids')")+1) - 1; last > lock.MaxToken || last < lock.MaxToken-room {
		t.Errorf("the last token of the next batch is %d, want one that is little less than %d", last, lock.MaxToken)
	}
}

func TestQuorumNeedsAStandby(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if err := RequireQuorum(t.Context(), h.url, "", true); !errors.Is(err, database.ErrNoStandby) {
		t.Errorf("a quorum without a standby: %v", err)
	}
	if h.read().Quorum {
		t.Error("the quorum was recorded nevertheless")
	}
	h.exec("update paddock.epochs set quorum = true")
	if err := h.read().Check(h.monitor.Known()); !errors.Is(err, database.ErrNoStandby) {
		t.Errorf("Check = %v, want ErrNoStandby", err)
	}
	if err := RequireQuorum(t.Context(), h.url, "", false); err != nil {
		t.Fatal(err)
	}
	if err := h.read().Check(h.monitor.Known()); err != nil {
		t.Error(err)
	}
}
