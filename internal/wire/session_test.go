package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

var sessionOpened = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

func TestSessionCrossesTheWire(t *testing.T) {
	t.Parallel()
	id, sent := lock.SessionID(someSession), time.Now()
	want := lock.SessionGrant{
		Session: lock.Session{
			ID: id, Holder: "<é>", TTL: 30 * time.Second, Grace: 2 * time.Second, Metadata: json.RawMessage(`{"a":[1]}`),
			OpenedAt: sessionOpened, ExpiresAt: sessionOpened.Add(30 * time.Second),
		},
		Until: sent.Add(time.Hour), Leases: 2, Places: 1,
	}
	text, err := Encode(SessionOf(want))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseSession(text, id, sent)
	if err != nil {
		t.Fatal(err)
	}
	if late := got.Until.Sub(want.Until); late > 0 || late < -time.Minute {
		t.Errorf("Until is %v after the end", late)
	}
	got.Until = want.Until
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, other := range map[string]string{
		"another session's":   strings.Replace(string(text), "7c1b", "7c1c", 1),
		"another public name": strings.Replace(string(text), "7bb9", "7bba", 1),
		"no public name":      strings.Replace(string(text), `"session"`, `"sessions"`, 1),
		"no object":           `[]`,
		"no members":          `{}`,
	} {
		if got, err := ParseSession([]byte(other), id, sent); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

func TestSessionInfoCrossesTheWire(t *testing.T) {
	t.Parallel()
	info := lock.SessionInfo{
		Ref: lock.SessionID(someSession).Ref(), Holder: "h", TTL: time.Second, Grace: time.Minute,
		Metadata: json.RawMessage(`{"a":1}`), OpenedAt: sessionOpened, ExpiresAt: sessionOpened.Add(time.Second),
		Remaining: time.Second, Ended: lock.Revoked, EndedAt: sessionOpened, Reason: "r", AsOf: sessionOpened, Leases: 2, Places: 1,
		Locks: []lock.SessionLock{
			{Name: "a", Mode: lock.Exclusive, Token: 41}, {Name: "b", Mode: lock.Permit, Slot: 2, Token: 42},
			{Name: "c", Mode: lock.Shared, Place: 7}, {Name: "(not covered)", Mode: lock.Exclusive},
		},
	}
	text, err := Encode(SessionInfoOf(info))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(text, ToSessionInfo, func(api.SessionInfo) bool { return true })
	if diff := cmp.Diff(info, got); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
	const locks = `"locks":[{"fencing_token":41,"mode":"exclusive","name":"a","slot":0},` +
		`{"fencing_token":42,"mode":"permit","name":"b","slot":2},{"mode":"shared","name":"c","place":7},` +
		`{"mode":"exclusive","name":"(not covered)"}]`
	if !strings.Contains(string(text), locks) {
		t.Errorf("%s does not contain %s", text, locks)
	}

	page := lock.Page[lock.SessionInfo]{Items: []lock.SessionInfo{{Ref: info.Ref, Holder: "h", AsOf: sessionOpened}}, Next: "x",
		Unreadable: []lock.Unreadable{{Name: "7586d260af22f763", Detail: "d"}}}
	if text, err = Encode(SessionPageOf(page)); err != nil || strings.Contains(string(text), "locks") {
		t.Errorf("%s, %v", text, err)
	}
	pageRead, err := Parse(text, ToSessionPage, func(api.SessionPage) bool { return true })
	if diff := cmp.Diff(page, pageRead); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// TestPagesNameWhatTheyLeaveOut and have no such field if that is nothing.
func TestPagesNameWhatTheyLeaveOut(t *testing.T) {
	t.Parallel()
	left := []lock.Unreadable{{Name: "a", Detail: "The row of paddock.records (name = 'a') cannot be read."}, {Detail: "d"}}
	locks, events := lock.Page[lock.Lock]{Items: []lock.Lock{}}, lock.Page[lock.Event]{Items: []lock.Event{}}
	for _, locks.Unreadable = range [][]lock.Unreadable{nil, left} {
		events.Unreadable = locks.Unreadable
		text, err := Encode(LockPageOf(locks))
		got, errParse := Parse(text, ToLockPage, func(api.LockPage) bool { return true })
		if diff := cmp.Diff(locks.Unreadable, got.Unreadable); err != nil || errParse != nil || diff != "" {
			t.Errorf("%v, %v, %s", err, errParse, diff)
		}
		if strings.Contains(string(text), "unreadable") != (locks.Unreadable != nil) {
			t.Errorf("the page is %s", text)
		}
		text, err = Encode(EventPageOf(events))
		gotEvents, errParse := Parse(text, ToEventPage, func(api.EventPage) bool { return true })
		if diff := cmp.Diff(events.Unreadable, gotEvents.Unreadable); err != nil || errParse != nil || diff != "" {
			t.Errorf("%v, %v, %s", err, errParse, diff)
		}
	}
}

func TestLeaseNamesItsSession(t *testing.T) {
	t.Parallel()
	id := lock.SessionID(someSession)
	asked := lock.Acquire{Name: "a", LeaseID: someID, SessionID: id}
	for _, session := range []lock.SessionRef{0, id.Ref()} {
		g := lock.Grant{Lease: lock.Lease{Name: "a", ID: someID, Token: 41, Mode: lock.Exclusive, Session: session}}
		text := AppendLease(nil, LeaseOf(g))
		got, err := ParseLease(text, asked, time.Now())
		if session == 0 { // the answer is not about the lease that was asked for
			if err == nil || strings.Contains(string(text), `"session"`) {
				t.Errorf("%s is a lease of %v", text, got.Session)
			}
			continue
		}
		if err != nil || got.Session != session || !strings.Contains(string(text), `"session"`) {
			t.Errorf("%s is a lease of %v: %v", text, got.Session, err)
		}
		if info := leaseInfoOf(lock.LeaseInfo{Session: session}); toLeaseInfo(info).Session != session {
			t.Errorf("%+v, want the session %v", info, session)
		}
	}
}

func TestProblemOfASessionHasItsEnd(t *testing.T) {
	t.Parallel()
	e := lock.Error{Code: lock.ErrSessionLost, Detail: "D.", Ended: lock.Revoked, EndedAt: sessionOpened, Reason: "r"}
	if diff := cmp.Diff(&e, ToError(ProblemOf(&e))); diff != "" {
		t.Error(diff)
	}
}
