package lock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

var names = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}\z`)

func FuzzCheckName(f *testing.F) {
	for _, seed := range []string{"", "a", "jobs:nightly", "a/b", "-a", "a b", "a\x00", "é", "\xff", "a@b-c_d.e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := lock.CheckName(name)
		if (err == nil) != names.MatchString(name) {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
		if err != nil && !errors.Is(err, lock.ErrInvalid) {
			t.Errorf("CheckName(%q) = %v, want ErrInvalid", name, err)
		}
	})
}

// FuzzApply decodes a sequence of commands, four bytes each, and runs them. The model checks every decision.
func FuzzApply(f *testing.F) {
	f.Add([]byte{0, 1, 10, 0, 1, 1, 0, 0, 2, 1, 0, 0})
	f.Add([]byte{0, 1, 5, 0, 7, 0, 200, 0, 1, 1, 0, 0, 2, 2, 9, 0})
	f.Add([]byte{0, 1, 50, 1, 0, 2, 50, 1, 0, 3, 50, 0, 0, 4, 50, 1, 2, 1, 0, 0, 2, 2, 0, 0})
	f.Add([]byte{0, 1, 50, 2, 0, 2, 50, 2, 0, 3, 50, 2, 3, 1, 0, 2, 8, 2, 0, 0, 7, 0, 30, 0, 4, 1, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		w := newModel(t)
		var calls []lock.Acquire
		for script = script[:min(len(script), 400)]; len(script) >= 4; script = script[4:] {
			n, with := time.Duration(script[2])*100*time.Millisecond, script[3]
			w.on(lock.Replica(with%3) + 1)
			calls = w.runCommand(script[0], id(script[1]%16+1), n, with, calls)
		}
	})
}

// runCommand runs the decoded command, and returns the calls that have waited.
func (w *model) runCommand(
	verb byte,
	lease lock.LeaseID,
	n time.Duration,
	with byte,
	calls []lock.Acquire,
) []lock.Acquire {
	call := lock.Acquire{Replica: w.self}
	if len(calls) > 0 {
		call = calls[int(with)%len(calls)]
	}
	switch verb % 9 {
	case 0:
		return w.runAcquire(lease, n, with, calls)
	case 1:
		w.do(lock.Renew{Name: name, LeaseID: lease, TTL: n, Metadata: newMetadata(with)})
	case 2:
		w.do(lock.Release{Name: name, LeaseID: lease})
	case 3:
		w.do(lock.Revoke{Name: name, Token: lock.Token(n / time.Second), Reason: "r", SkipGrace: with&64 != 0})
	case 4:
		w.do(sweep)
	case 5:
		w.on(call.Replica).do(claim(call))
	case 6:
		leave := endWait(call)
		leave.KeepPlace, leave.Disconnected = with&64 != 0, with&128 != 0
		w.on(call.Replica).do(leave)
	case 7:
		w.advance(n)
	case 8:
		w.toggleReplica(w.self)
	}
	return calls
}

// newMetadata returns the metadata of a renewal, nil half of the time.
func newMetadata(with byte) json.RawMessage {
	if with&1 == 0 {
		return nil
	}
	return json.RawMessage(fmt.Sprintf(`{"n":%d}`, with))
}

func (w *model) runAcquire(lease lock.LeaseID, n time.Duration, with byte, calls []lock.Acquire) []lock.Acquire {
	a := lock.Acquire{
		Name: name, LeaseID: lease, Holder: "h", Mode: lock.Mode(with%4) + 1, TTL: n, Grace: n / 7, MaxHold: n * 3, KeepPlace: with&64 != 0,
	}
	if a.Mode == lock.Permit {
		a.Capacity = 2
	}
	bounds, err := lock.Bounds{DefaultTTL: time.Second, MaxWaiters: 3}.Resolve()
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	if a, err = a.Resolve(bounds); err != nil {
		return calls
	}
	if with&128 == 0 {
		a = w.call(a)
	}
	if w.do(a).Queued {
		calls = append(calls, a)
	}
	return calls
}

// toggleReplica silences the replica, or revives it.
func (w *model) toggleReplica(r lock.Replica) {
	if _, silent := w.silent[r]; silent {
		w.unsilence(r)
	} else {
		w.silence(r)
	}
}
