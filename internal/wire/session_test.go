package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
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
			OpenedAt: sessionOpened, ExpiresAt: sessionOpened.Add(30 * time.Second), RevokedLeases: 3,
		},
		Until: sent.Add(time.Hour),
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

// TestPagesNameWhatTheyLeaveOut and have no such field if that is nothing.
func TestPagesNameWhatTheyLeaveOut(t *testing.T) {
	t.Parallel()
	left := []paddock.Unreadable{{Name: "a", Detail: "The row of paddock.records (name = 'a') cannot be read."}, {Detail: "d"}}
	locks, events := paddock.Page[lock.Lock]{Items: []lock.Lock{}}, paddock.Page[lock.Event]{Items: []lock.Event{}}
	for _, locks.Unreadable = range [][]paddock.Unreadable{nil, left} {
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
