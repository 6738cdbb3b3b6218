package client_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// A hubTest is a hub whose requests for events are answered by the test, in a synctest bubble.
type hubTest struct {
	*testing.T
	*client.Client
	begun time.Time
	asked chan askedEvents
}

// askedEvents is a request of the hub.
type askedEvents struct {
	paddock.EventQuery
	at     time.Duration
	gone   <-chan struct{}
	answer func(paddock.Page[lock.Event], error)
}

func withHub(t *testing.T, test func(*hubTest)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hubTest{T: t, begun: time.Now(), asked: make(chan askedEvents, 100)}
		h.Client = client.NewHub(h.events)
		test(h)
	})
}

func (h *hubTest) events(ctx context.Context, q paddock.EventQuery) (page paddock.Page[lock.Event], err error) {
	done := make(chan struct{})
	h.asked <- askedEvents{q, time.Since(h.begun), ctx.Done(), func(p paddock.Page[lock.Event], e error) {
		page, err = p, e
		close(done)
	}}
	select {
	case <-done:
		return page, err
	case <-ctx.Done():
		return page, context.Cause(ctx)
	}
}

// watch watches an exclusive lease. It returns the times of its hints.
func (h *hubTest) watch(name string, token lock.Token) (hints *[]time.Duration, leave func()) {
	hints = new([]time.Duration)
	return hints, h.WatchEnds([]lock.Lease{{Name: name, Token: token}}, 0, func() { *hints = append(*hints, time.Since(h.begun)) })
}

// next returns the next request, which must be sent by then.
func (h *hubTest) next(by time.Duration) askedEvents {
	h.Helper()
	select {
	case a := <-h.asked:
		if a.at > by {
			h.Errorf("a request was sent after %v, want %v at most", a.at, by)
		}
		return a
	case <-time.After(by - time.Since(h.begun) + time.Nanosecond):
		h.Fatalf("no request was sent in %v", by)
		return askedEvents{}
	}
}

// none checks that no request is sent until then.
func (h *hubTest) none(until time.Duration) {
	h.Helper()
	time.Sleep(until - time.Since(h.begun))
	synctest.Wait()
	if len(h.asked) > 0 {
		h.Errorf("%d requests were sent, want none until %v", len(h.asked), until)
	}
}

// start watches a lease and answers the request for a cursor. It returns the long request that follows.
func (h *hubTest) start(name string, token lock.Token) (hints *[]time.Duration, leave func(), long askedEvents) {
	h.Helper()
	hints, leave = h.watch(name, token)
	h.next(300*time.Millisecond).answer(paddock.Page[lock.Event]{Next: "41"}, nil)
	return hints, leave, h.next(300 * time.Millisecond)
}

// wantHints checks how many hints there were.
func (h *hubTest) wantHints(what string, hints *[]time.Duration, want int) {
	h.Helper()
	synctest.Wait()
	if len(*hints) != want {
		h.Errorf("%s: hints came after %v, want %d", what, *hints, want)
	}
}

func revoked(name string, token lock.Token) paddock.Page[lock.Event] {
	return paddock.Page[lock.Event]{Next: "42", Items: []lock.Event{{Name: name, Token: token, Kind: lock.Revoked}}}
}

func TestAShortLeaseCostsTheHubNothing(t *testing.T) {
	withHub(t, func(h *hubTest) {
		for range 10 {
			_, leave := h.watch("a", 1)
			time.Sleep(290 * time.Millisecond)
			leave()
		}
		h.none(time.Minute)
	})
}

// TestAJoiningGuardGetsOneHintAfterThereIsACursor: its renewal covers what happened before the cursor.
func TestAJoiningGuardGetsOneHintAfterThereIsACursor(t *testing.T) {
	withHub(t, func(h *hubTest) {
		hints, leave := h.watch("a", 1)
		defer leave()
		first := h.next(300 * time.Millisecond)
		if first.Wait != 0 || first.Cursor != paddock.CursorNow || first.at != 300*time.Millisecond {
			t.Errorf("the first request is %+v, want one for a cursor after 300 ms", first.EventQuery)
		}
		h.wantHints("without a cursor", hints, 0)
		first.answer(paddock.Page[lock.Event]{Next: "41"}, nil)
		long := h.next(300 * time.Millisecond)
		if long.Wait != 10*time.Second || long.Cursor != "41" || !slices.Equal(long.Names, []string{"a"}) {
			t.Errorf("the second request is %+v, want one that waits after the cursor", long.EventQuery)
		}
		h.wantHints("with a cursor", hints, 1)
		long.answer(paddock.Page[lock.Event]{Next: "50"}, nil)
		if again := h.next(600 * time.Millisecond); again.Cursor != "50" {
			t.Errorf("the next request is %+v, want it after the cursor 50", again.EventQuery)
		}
		h.wantHints("after nothing has happened", hints, 1)
	})
}

// TestJoiningGuardsAreNamedTogether lets guards join every 10 ms, in vain hope of a request each.
func TestJoiningGuardsAreNamedTogether(t *testing.T) {
	withHub(t, func(h *hubTest) {
		_, leave, long := h.start("first", 1)
		defer leave()
		for i := range 30 {
			_, leave := h.watch(fmt.Sprint("later:", i), 1)
			defer leave()
			time.Sleep(10 * time.Millisecond)
		}
		again := h.next(1200 * time.Millisecond)
		select {
		case <-long.gone:
		default:
			t.Error("the open request was not given up")
		}
		if again.Cursor != "41" {
			t.Errorf("the request has the cursor %s, want 41", again.Cursor)
		}
		for last := again.at; len(again.Names) < 31; last = again.at {
			again = h.next(1200 * time.Millisecond)
			if pause := again.at - last; pause < 300*time.Millisecond {
				t.Errorf("a request was sent %v after the one before", pause)
			}
		}
	})
}

func TestAMatchingEventIsAHint(t *testing.T) {
	for what, c := range map[string]struct {
		page   paddock.Page[lock.Event]
		mine   int
		others int
	}{
		"of the lease":     {revoked("a", 1), 1, 0},
		"of another token": {revoked("a", 2), 0, 0},
		"of another slot":  {paddock.Page[lock.Event]{Next: "42", Items: []lock.Event{{Name: "a", Token: 1, Slot: 1}}}, 0, 0},
		"of another lock":  {revoked("b", 1), 0, 1},
		"a gap":            {paddock.Page[lock.Event]{Next: "42", Gap: true}, 1, 1},
		"a session":        {paddock.Page[lock.Event]{Next: "42", EndedSessions: []lock.SessionRef{7}}, 0, 0},
	} {
		t.Run(what, func(t *testing.T) {
			withHub(t, func(h *hubTest) {
				mine, leaveMine := h.watch("a", 1)
				defer leaveMine()
				others, leaveOthers := h.watch("b", 1)
				defer leaveOthers()
				sessions := 0
				defer h.WatchEnds(nil, 7, func() { sessions++ })()
				h.next(time.Second).answer(paddock.Page[lock.Event]{Next: "41"}, nil)
				long := h.next(time.Second)
				for len(long.Names) < 2 || len(long.Sessions) < 1 {
					long = h.next(time.Second)
				}
				mineBefore, othersBefore, sessionsBefore := len(*mine), len(*others), sessions
				long.answer(c.page, nil)
				h.wantHints("mine", mine, mineBefore+c.mine)
				h.wantHints("others", others, othersBefore+c.others)
				if got, want := sessions-sessionsBefore, len(c.page.EndedSessions); got != want && !c.page.Gap {
					t.Errorf("the session got %d hints, want %d", got, want)
				}
			})
		})
	}
}

func TestABusyLockDoesNotCostARequestForEachEvent(t *testing.T) {
	withHub(t, func(h *hubTest) {
		_, leave, long := h.start("a", 1)
		defer leave()
		for range 10 {
			last := long.at
			long.answer(revoked("a", 2), nil)
			if long = h.next(time.Minute); long.at-last < 300*time.Millisecond {
				t.Errorf("a request was sent %v after the one before", long.at-last)
			}
		}
	})
}

// TestABusyClientHears: leases join so often that each request that waits is given up, and an answer takes longer than that.
func TestABusyClientHears(t *testing.T) {
	withHub(t, func(h *hubTest) {
		var sent, heard int
		h.Client = client.NewHub(func(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
			sent++
			select {
			case <-time.After(q.Wait + 400*time.Millisecond):
				heard++
				return paddock.Page[lock.Event]{Next: fmt.Sprint(heard)}, nil
			case <-ctx.Done():
				return paddock.Page[lock.Event]{}, context.Cause(ctx)
			}
		})
		var leave [10]func()
		for i := range 600 { // a minute
			if last := leave[i%10]; last != nil {
				last()
			}
			_, leave[i%10] = h.watch(fmt.Sprint("job:", i), 1)
			time.Sleep(100 * time.Millisecond)
		}
		for _, leave := range leave {
			leave()
		}
		synctest.Wait()
		if heard < 30 || sent > 240 {
			t.Errorf("%d answers to %d requests in a minute", heard, sent)
		}
	})
}

func TestAFailingHubPausesAndKeepsItsCursor(t *testing.T) {
	withHub(t, func(h *hubTest) {
		hints, leave, long := h.start("a", 1)
		defer leave()
		for most := time.Second; most < 40*time.Second; most *= 2 {
			most = min(most, 30*time.Second)
			last := time.Since(h.begun)
			long.answer(paddock.Page[lock.Event]{}, &lock.Error{Code: lock.ErrUnavailable})
			long = h.next(time.Hour)
			if pause := long.at - last; pause < most/2 || pause > most {
				t.Errorf("paused for %v, want %v to %v", pause, most/2, most)
			}
			if long.Cursor != "41" {
				t.Errorf("the request has the cursor %s, want 41", long.Cursor)
			}
		}
		h.wantHints("failures", hints, 1)
	})
}

func TestAHubThatMayNotReadEventsPausesForLong(t *testing.T) {
	for _, code := range []lock.Code{lock.ErrRoleMissing, lock.ErrNameNotAllowed, "no_route"} {
		t.Run(string(code), func(t *testing.T) {
			withHub(t, func(h *hubTest) {
				_, leave, long := h.start("a", 1)
				defer leave()
				long.answer(paddock.Page[lock.Event]{}, &lock.Error{Code: code})
				_, leaveLater := h.watch("b", 1) // which shortens no pause
				defer leaveLater()
				h.none(5 * time.Minute)
				h.next(6 * time.Minute)
			})
		})
	}
}

func TestAHubBeginsAnewAfterARefusedCursor(t *testing.T) {
	withHub(t, func(h *hubTest) {
		hints, leave, long := h.start("a", 1)
		defer leave()
		long.answer(paddock.Page[lock.Event]{}, lock.Invalid("cursor", "is invalid"))
		first := h.next(2 * time.Second)
		if first.Cursor != paddock.CursorNow {
			t.Errorf("the request has the cursor %s", first.Cursor)
		}
		first.answer(paddock.Page[lock.Event]{Next: "7"}, nil)
		h.next(2 * time.Second)
		h.wantHints("after the new cursor", hints, 2)
	})
}

// TestAHubStopsWithTheLastGuard: the bubble would not end while a goroutine of the hub runs.
func TestAHubStopsWithTheLastGuard(t *testing.T) {
	withHub(t, func(h *hubTest) {
		_, leave, long := h.start("a", 1)
		leave()
		<-long.gone
		h.none(time.Minute)
		_, leave, _ = h.startAgain("b")
		leave()
		leave() // a second time
	})
}

// startAgain is start for a hub that has stopped.
func (h *hubTest) startAgain(name string) (hints *[]time.Duration, leave func(), long askedEvents) {
	h.begun = time.Now()
	return h.start(name, 1)
}

func TestAHubNamesFiveThousandLocks(t *testing.T) {
	withHub(t, func(h *hubTest) {
		var leases []lock.Lease
		for i := range 6000 {
			leases = append(leases, lock.Lease{Name: fmt.Sprint("lock:", i), Token: 1})
		}
		defer h.WatchEnds(leases, 0, func() {})()
		defer h.WatchEnds(leases[:1], 0, func() {})()
		if q := h.next(300 * time.Millisecond); len(q.Names) != paddock.MaxEventNames || q.Names[4999] != "lock:4999" {
			t.Errorf("the request has %d names, want the first %d", len(q.Names), paddock.MaxEventNames)
		}
	})
}
