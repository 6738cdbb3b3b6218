package metrics_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/test/internal/tools"
)

const alertsFile = "../../deploy/prometheus/alerts.yaml"

// alertNames returns the names of all alerts.
func alertNames(rules string) (names []string) {
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1) {
		names = append(names, m[1])
	}
	return names
}

// scaled returns the rules with short periods and thresholds, so that a test need not take an hour.
func scaled(t *testing.T, rules string) string {
	t.Helper()
	for _, r := range []struct{ old, short string }{
		{"[15m]", "[20s]"}, {"[10m]", "[15s]"}, {"[5m]", "[10s]"}, {"[30m:1m] offset 1h", "[5s:1s] offset 20s"},
		{"for: 15s", "for: 2s"}, {"for: 1m", "for: 2s"}, {"for: 5m", "for: 2s"}, {"for: 1h", "for: 2s"},
		{`"} > 30`, `"} > 6`},
	} {
		if !strings.Contains(rules, r.old) {
			t.Fatalf("the rules have no %s to shorten", r.old)
		}
		rules = strings.ReplaceAll(rules, r.old, r.short)
	}
	return rules
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlertsAtFullScale runs promtool on the alerts as they are, with made-up series: each fires when it should, and
// not before.
func TestAlertsAtFullScale(t *testing.T) {
	t.Parallel()
	for rules, tests := range map[string]string{
		alertsFile:                    "testdata/alerts_test.yaml",
		"../../deploy/ha/alerts.yaml": "testdata/ha_alerts_test.yaml",
	} {
		out, err := exec.CommandContext(t.Context(), tools.Path(t, "promtool"), "test", "rules", tests).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		tested := readFile(t, tests)
		for _, name := range alertNames(readFile(t, rules)) {
			if strings.Count(tested, "alertname: "+name+"\n") < 2 {
				t.Errorf("%s is not tested to fire, and to stay silent", name)
			}
		}
	}
}

// A replica is one process of the service, and where its metrics are.
type replica struct {
	paddock.Service
	process *proctest.Process
	base    string
	target  string
}

// startReplica starts a replica of the program at path.
func startReplica(t *testing.T, path, databaseURL string, args ...string) replica {
	t.Helper()
	p := proctest.New(exec.Command(path, append([]string{"serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
		"--database-url", databaseURL}, args...)...))
	p.Start(t)
	target := p.Stderr.Await(t, `"msg":"serving metrics","address":"([^"]+)"`)
	base := "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
	locks, err := client.New(client.Options{BaseURL: base})
	if err != nil {
		t.Fatal(err)
	}
	return replica{locks, p, base, target}
}

// take acquires the lock.
func take(t *testing.T, via paddock.Service, a lock.Acquire) lock.Grant {
	t.Helper()
	a.LeaseID, a.Holder = lock.LeaseID(uuid.New()), "test"
	g, err := via.Acquire(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// lockOf returns an acquire of the lock for an hour.
func lockOf(name string) lock.Acquire { return lock.Acquire{Locks: lock.One(name), TTL: time.Hour} }

// must ends the test unless err is one of the codes.
func must(t *testing.T, err error, codes ...error) {
	t.Helper()
	for _, c := range codes {
		if errors.Is(err, c) {
			return
		}
	}
	if err != nil || len(codes) > 0 {
		t.Fatalf("the error is %v, want %v", err, codes)
	}
}

// An incident is a deployment that a test breaks.
type incident struct {
	*prometheus
	replicas []replica
	database *pgx.Conn // of an operator
}

// TestAlertsFire breaks a deployment in one way after the other. Before, nothing fires; then the alerts about each. The
// alerts about what clients do need no broken database: internal/metrics shows what moves the metrics that they read.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	rules, url := readFile(t, alertsFile), pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	a, b := startReplica(t, built.Path(t), url), startReplica(t, built.Path(t), url)
	s := &incident{prometheus: startPrometheus(t, scaled(t, rules), a.target, b.target), replicas: []replica{a, b}, database: conn}
	var stops []func()
	for _, via := range s.replicas {
		stops = append(stops, meanwhile(func() { useLocks(t.Context(), via) }))
	}
	s.eventually("all replicas are scraped", func() (bool, any) {
		return s.series("paddock_build_info") == len(s.replicas) && len(s.firing()) == 0, s.firing()
	})
	for began := time.Now(); time.Since(began) < 15*time.Second; time.Sleep(time.Second) {
		if firing := s.firing(); len(firing) > 0 {
			t.Fatalf("in a sound deployment %v fire", firing)
		}
	}
	s.failOver()
	s.hang()
	s.cutOff()
	for _, stop := range stops {
		stop()
	}
	a.process.Kill(t)
	s.awaitFiring("PaddockReplicaGone")
	b.process.Kill(t)
	s.awaitFiring("PaddockDown")
}

// useLocks acquires, renews and releases a lock of its own.
func useLocks(ctx context.Context, via replica) {
	id := lock.LeaseID(uuid.New())
	g, err := via.Acquire(ctx, lock.Acquire{Locks: lock.One("load-" + via.target), Holder: "load", LeaseID: id, TTL: 5 * time.Second})
	if err == nil {
		_, _ = via.Renew(ctx, lock.Renew{Locks: []string{g.Name}, LeaseID: id})
		_ = via.Release(ctx, lock.Release{Locks: []string{g.Name}, LeaseID: id})
	}
	time.Sleep(500 * time.Millisecond)
}

// meanwhile calls f again and again, until the function that it returns is called.
func meanwhile(f func()) (stop func()) {
	var running sync.WaitGroup
	ended := make(chan struct{})
	running.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				f()
			}
		}
	})
	return func() {
		close(ended)
		running.Wait()
	}
}

func (s *incident) exec(sql string) {
	s.Helper()
	if _, err := s.database.Exec(s.Context(), sql); err != nil {
		s.Fatalf("%s: %v", sql, err)
	}
}

// failOver starts an epoch, as after a fail-over.
func (s *incident) failOver() {
	s.Helper()
	s.exec(`insert into paddock.epochs (epoch, began_at, system_identifier, timeline, reason, closed_until, quorum, longest_ms)
		select epoch + 1, clock_timestamp(), system_identifier, timeline, 'test', clock_timestamp() + interval '1 hour', quorum, longest_ms
		from paddock.epochs order by epoch desc limit 1`)
	s.awaitFiring("PaddockGrantsPaused", "PaddockEpochChanged")
	s.exec("update paddock.epochs set closed_until = null")
}

const paddockBackends = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"

// hang makes each commit take two seconds. Then connections break meanwhile.
func (s *incident) hang() {
	s.Helper()
	s.exec(`create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(2); return new; end $$`)
	s.exec(`create trigger slow before insert on paddock.event_batches for each row execute function slow()`)
	for range 40 {
		defer meanwhile(func() {
			a := lock.Acquire{Locks: lock.One("slow:" + uuid.NewString()), Holder: "h", LeaseID: lock.LeaseID(uuid.New()), TTL: time.Minute}
			_, _ = s.replicas[0].Acquire(s.Context(), a)
		})()
	}
	s.awaitFiring("PaddockCommitsHang", "PaddockDatabaseSlow")
	stop := meanwhile(func() {
		time.Sleep(time.Second)
		_, _ = s.database.Exec(s.Context(), "select pg_terminate_backend(pid) "+paddockBackends+" and wait_event = 'PgSleep'")
	})
	s.awaitFiring("PaddockOutcomesUnknown", "PaddockUnavailable")
	stop()
	s.exec("drop trigger slow on paddock.event_batches")
}

// cutOff refuses all connections to the database.
func (s *incident) cutOff() {
	s.Helper()
	s.exec("update pg_database set datallowconn = false where datname = current_database()")
	s.exec("select pg_terminate_backend(pid) " + paddockBackends)
	s.awaitFiring("PaddockReplicaCutOff")
	s.exec("update pg_database set datallowconn = true where datname = current_database()")
}
