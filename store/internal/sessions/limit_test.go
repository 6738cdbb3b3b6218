package sessions

import (
	"testing"
	"time"
)

// TestACountIncludesWhatIsNotStoredYet: calls that are admitted one after the other, before any of their leases is in
// the database, however long that takes within decidedAfter.
func TestACountIncludesWhatIsNotStoredYet(t *testing.T) {
	t.Parallel()
	const limit = 3
	var l limiter
	now := time.Now()
	l.set(1, 0, now)
	for i := range limit {
		if enough, _ := l.admit(1, 1, limit, now); !enough {
			t.Fatalf("lease %d was not admitted", i)
		}
		now = now.Add(recountAfter)
	}
	for range 3 {
		if enough, full := l.admit(1, 1, limit, now); enough || full {
			t.Fatalf("one more: enough is %v, full is %v, want a count", enough, full)
		}
		l.set(1, 0, now) // none of them is stored yet
		if enough, full := l.admit(1, 1, limit, now); enough || !full {
			t.Fatalf("after a count: enough is %v, full is %v", enough, full)
		}
		now = now.Add(recountAfter)
	}
	now = now.Add(2 * decidedAfter)
	l.set(1, limit-1, now) // one was released
	if enough, _ := l.admit(1, 1, limit, now); !enough {
		t.Error("there is no room after a release")
	}
	if enough, _ := l.admit(1, 1, limit, now); enough {
		t.Error("there is room for more than the limit")
	}
	if enough, full := l.admit(2, 1, limit, now); enough || full {
		t.Error("a session that was never counted was not counted first")
	}
}
