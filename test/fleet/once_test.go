package fleet_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

var (
	periods = flag.Int("fleet.periods", 6, "in how many periods three machines start the same job")
	period  = flag.Duration("fleet.period", time.Second, "how long a period is; the machines start 4% to 60% of it apart")
)

// TestAJobIsDoneOncePerPeriod, which takes 10 ms, although three machines start it at different times, and the first one is
// killed in the middle. The grants are compared on the clock of the database: completed ones are a period apart.
func TestAJobIsDoneOncePerPeriod(t *testing.T) {
	t.Parallel()
	const name = "jobs:tick"
	_, url := built.Serve(t, pgtest.URL(t))
	locks, err := client.New(client.Options{BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	done := make(map[lock.Token]int) // the period in which a token was that of a completed run
	killed, lost := 0, 0
	for i := range *periods {
		var machines sync.WaitGroup
		var mu sync.Mutex
		completed := 0
		for m := range 3 {
			job, late := "sleep 0.01; echo done $PADDOCK_FENCING_TOKEN", 0.04+rand.Float64()*0.56
			victim := m == 0
			if victim {
				late = 0
				job = fmt.Sprintf("sleep 0.%03d; kill -9 $PPID $$", rand.IntN(10))
			}
			machines.Go(func() {
				time.Sleep(time.Duration(late * float64(*period)))
				run := built.Start(t, "run", "--url", url, "--ttl=1s", "--wait=1h", "--once-per", period.String(), name, "--", "sh", "-c", job)
				code := run.Exit(t)
				mu.Lock()
				defer mu.Unlock()
				switch token := regexp.MustCompile(`done (\d+)`).FindStringSubmatch(run.Stdout.String()); {
				case code == 0 && token != nil:
					n, err := strconv.ParseInt(token[1], 10, 64)
					if err != nil {
						t.Error(err)
					}
					done[lock.Token(n)], completed = i, completed+1
				case victim && code == -1:
					killed++
				case code == 76:
					lost++ // the machine was too slow to renew its lease, so another one has to do the job
				case code != 0:
					t.Errorf("period %d, machine %d: exit code %d", i, m, code)
				}
			})
		}
		machines.Wait()
		if completed == 0 {
			t.Errorf("period %d: no machine has completed the job", i)
		}
		awaitOpen(t, locks, name)
	}
	var last time.Time
	compared := 0
	for _, e := range history(t, locks, name) {
		if _, ok := done[e.Token]; e.Kind != lock.Granted || !ok {
			continue
		}
		if apart := e.At.Sub(last); apart < *period {
			t.Errorf("the job was completed twice, %v apart, in period %d", apart, done[e.Token])
		}
		last, compared = e.At, compared+1
	}
	if compared != len(done) {
		t.Errorf("the history has %d of %d completed runs", compared, len(done))
	}
	if killed == 0 {
		t.Error("no run was killed in the middle of the job")
	}
	t.Logf("%d periods, %d completed runs, %d killed, %d lost their leases", *periods, len(done), killed, lost)
}

// awaitOpen waits until the lock is not closed.
func awaitOpen(t *testing.T, locks paddock.Service, name string) {
	t.Helper()
	for w := (paddock.Watch{Name: name, Wait: lock.MaxWait}); ; {
		l, err := locks.Watch(t.Context(), w)
		if err != nil {
			t.Fatal(fmt.Errorf("waiting until %s opens: %w", name, err))
		}
		if l.Closed == nil {
			return
		}
		w.Seen = l.Version()
	}
}
