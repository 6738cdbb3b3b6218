package waiters

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// listens runs the listener and the notifier, but no heartbeats, until the test ends. It returns when the listener is
// connected. events counts the calls of the hook.
func (r *replica) listens(t *testing.T) (events *atomic.Int32) {
	t.Helper()
	events = new(atomic.Int32)
	var tasks sync.WaitGroup
	tasks.Go(r.sendNotifications)
	tasks.Go(newListener(r.Registry, func() { events.Add(1) }).run)
	t.Cleanup(func() { r.db.Stop(); tasks.Wait() })
	until(t, "it listens", func() bool { return events.Load() > 0 })
	return events
}

func TestAGrantByAnotherReplicaIsNotified(t *testing.T) {
	t.Parallel()
	url, e := pgtest.URL(t), newEngine()
	here, there := e.replica(t, url, noLimit), e.replica(t, url, noLimit)
	here.listens(t)
	there.listens(t)
	lease := there.hold(t, "a")
	call := here.waits(t.Context(), t, wants(t, "a", "next"))
	there.release(t, lease)
	if got := ended(t, call); got.err != nil || got.out.Leases[0].Holder != "next" || got.out.Leases[0].Unclaimed() {
		t.Errorf("got %+v, %v", got.out.Leases[0], got.err)
	}
}

// TestEventsAreNotifiedIfAnotherReplicaHasSubscribers, as its heartbeat has told.
func TestEventsAreNotifiedIfAnotherReplicaHasSubscribers(t *testing.T) {
	t.Parallel()
	url, e := pgtest.URL(t), newEngine()
	writes, watches := e.replica(t, url, noLimit), e.replica(t, url, noLimit)
	own, events := writes.listens(t), watches.listens(t)
	commit := []*row.Outcome{{Decision: lock.Decision{Events: []lock.Event{{Name: "a"}}}}}
	writes.Notify(commit)
	if writes.notifier.events {
		t.Error("without subscribers they are notified")
	}
	if _, err := watches.heartbeat(time.Now(), true, describe()); err != nil {
		t.Fatal(err)
	}
	exec(t, connect(t, url), "update paddock.replicas set alive_until = alive_until + interval '1 h'")
	if _, err := writes.heartbeat(time.Now(), false, describe()); err != nil {
		t.Fatal(err)
	}
	before := own.Load()
	writes.Notify([]*row.Outcome{{}})
	if writes.notifier.events {
		t.Error("without events there is a notification")
	}
	writes.Notify(commit)
	until(t, "the other replica is told", func() bool { return events.Load() == 2 })
	if own.Load() != before {
		t.Error("a replica acts on its own notification")
	}
}

// TestAListenerWakesAllCallsWhenItsConnectionIsLost: they may have missed notifications.
func TestAListenerWakesAllCallsWhenItsConnectionIsLost(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, conn := newEngine().replica(t, url, noLimit), connect(t, url)
	events := r.listens(t)
	c, err := r.register(&lock.Acquire{Locks: lock.One("a")})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the connection is ended", func() bool {
		return number(t, conn, `select count(pg_terminate_backend(pid)) from pg_stat_activity
			where datname = current_database() and query like 'listen paddock;%'`) == 1
	})
	until(t, "another listens", func() bool { return events.Load() == 2 })
	select {
	case <-c.woken:
	default:
		t.Error("the call is not woken")
	}
}

// TestADeafListenerIsReportedOnce until it hears again. At first its echo gets lost.
func TestADeafListenerIsReportedOnce(t *testing.T) {
	t.Parallel()
	log := new(proctest.Transcript)
	db := openDB(t, pgtest.URL(t), slog.New(slog.NewTextHandler(log, nil)))
	l := newListener(New(db, 1, noLimit, nil), func() {})
	l.check, l.echoTimeout = time.Millisecond, 2*time.Millisecond
	l.pause.MaxInterval = time.Millisecond
	attempts := 0
	l.sendEcho = func(echo string) error {
		if attempts++; attempts < 4 {
			return nil
		}
		l.check, l.echoTimeout = listenCheck, patience
		return l.notifySelf(echo)
	}
	done := make(chan struct{})
	go func() { defer close(done); l.run() }()
	until(t, "it hears itself", func() bool { return log.Count("notifications resumed") == 1 })
	db.Stop()
	<-done
	for _, line := range []string{`level=ERROR msg="notifications do not arrive`, `level=WARN msg="background task failed; retrying" task=listener`} {
		if n := log.Count(line); n != 1 {
			t.Errorf("%s is logged %d times", line, n)
		}
	}
}

// TestAListenerThatHasHeardItselfMayBeSilent: its time is over only after the echo, with another replica's
// notification.
func TestAListenerThatHasHeardItselfMayBeSilent(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r, conn := newEngine().replica(t, url, noLimit), connect(t, url)
	var l *listener
	events := 0
	l = newListener(r.Registry, func() {
		switch events++; events {
		case 2:
			l.echoTimeout = 0
		case 3:
			r.db.Stop()
		}
	})
	l.echoTimeout = patience
	l.sendEcho = func(echo string) error {
		err := l.notifySelf(echo)
		for range 2 {
			exec(t, conn, `notify paddock, '{"from": -1, "events": true}'`)
		}
		return err
	}
	if err := l.listen(); !errors.Is(err, context.Canceled) || events != 3 {
		t.Errorf("it ended with %v after %d notifications", err, events)
	}
}

func TestAListenerEndsWithTheDatabase(t *testing.T) {
	t.Parallel()
	r := newEngine().replica(t, pgtest.URL(t), noLimit)
	l := newListener(r.Registry, r.db.Stop)
	if err := l.listen(); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestAMalformedNotificationIsIgnored(t *testing.T) {
	t.Parallel()
	log := new(proctest.Transcript)
	db := openDB(t, pgtest.URL(t), slog.New(slog.NewTextHandler(log, nil)))
	l := newListener(New(db, 1, noLimit, nil), func() { t.Error("it is acted on") })
	for _, payload := range []string{"", "{", `{"from": "me"}`, `{"from": 1, "events": true}`} {
		l.handle(payload)
	}
	if n := log.Count("notification is malformed"); n != 3 {
		t.Errorf("%d were reported, want 3", n)
	}
}

// TestNotificationsFitIntoWhatPostgreSQLTakes: less than 8000 bytes.
func TestNotificationsFitIntoWhatPostgreSQLTakes(t *testing.T) {
	t.Parallel()
	n := notifier{pending: make(chan struct{}, 1)}
	for range 2*maxGranted + 1 {
		n.add([]lock.Attachment{math.MaxInt64}, false)
	}
	n.add(nil, true)
	payloads, err := n.take(math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	granted, events := 0, 0
	for _, payload := range payloads {
		var one notification
		if err := json.Unmarshal([]byte(payload), &one); err != nil || len(payload) >= 8000 {
			t.Errorf("a notification of %d bytes, %v", len(payload), err)
		}
		granted += len(one.Granted)
		if one.Events {
			events++
		}
	}
	if granted != 2*maxGranted+1 || events != 1 || len(payloads) != 4 {
		t.Errorf("%d notifications name %d calls and %d times events", len(payloads), granted, events)
	}
	if payloads, err := n.take(1); err != nil || len(payloads) != 0 {
		t.Errorf("then there are %q, %v", payloads, err)
	}
}
