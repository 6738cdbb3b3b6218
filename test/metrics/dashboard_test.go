package metrics_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// queries returns the queries of the dashboard, by the title of the panel, and those of the documentation.
func queries(t *testing.T) map[string][]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, "../../deploy/grafana/paddock.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
	}
	const page = "docs/observability.md"
	for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(readFile(t, "../../"+page), -1) {
		all[page] = append(all[page], strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	if len(all) < 10 || len(all[page]) < 5 {
		t.Fatalf("there are only %d panels and %d documented queries", len(all)-1, len(all[page]))
	}
	return all
}

// TestEveryQueryReturnsData while paddock verify uses two replicas, so each names metrics that exist.
func TestEveryQueryReturnsData(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	a, b := startReplica(t, built.Path(t), url, "--metrics-names", "jobs:"), startReplica(t, built.Path(t), url)
	take(t, a, lockOf("jobs:nightly"))
	p := startPrometheus(t, "groups: []", a.target, b.target)
	verify := built.Start(t, "verify", "--url", a.base, "--url", b.base, "--for", "20s")
	for from, some := range queries(t) {
		for _, query := range some {
			short := strings.NewReplacer("$__rate_interval", "20s", "[5m]", "[20s]", "[10m]", "[20s]", "[1h]", "[20s]").Replace(query)
			p.eventually(from+" has data", func() (bool, any) { return p.series(short) > 0, short })
		}
	}
	if code := verify.Exit(t); code != 0 {
		t.Errorf("paddock verify ended with %d:\n%s", code, verify.Stdout)
	}
}

// TestEveryNameInAQueryIsAMetric of a replica: an alert about a metric that does not exist would stay silent.
func TestEveryNameInAQueryIsAMetric(t *testing.T) {
	t.Parallel()
	r := startReplica(t, built.Path(t), pgtest.URL(t), "--metrics-names", "jobs:")
	take(t, r, lockOf("jobs:nightly"))
	waited := take(t, r, lock.Acquire{Locks: lock.One("x"), TTL: time.Minute, Wait: time.Second}) // some metrics begin with their first use
	must(t, r.Release(t.Context(), lock.Release{Locks: []string{waited.Name}, LeaseID: waited.ID}))
	metrics := make(map[string]bool)
	for deadline := time.Now().Add(time.Minute); !metrics["paddock_locks"] && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		for _, line := range regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)`).FindAllStringSubmatch(proctest.Scrape(t, "http://"+r.target+"/metrics"), -1) {
			metrics[line[1]] = true
			if line[2] == "histogram" {
				metrics[line[1]+"_bucket"], metrics[line[1]+"_sum"], metrics[line[1]+"_count"] = true, true, true
			}
		}
	}
	for _, missing := range unknownNames(readFile(t, alertsFile), metrics) {
		t.Errorf("an alert names %s, which is no metric", missing)
	}
	for from, some := range queries(t) {
		for _, missing := range unknownNames(strings.Join(some, "\n"), metrics) {
			t.Errorf("%s names %s, which is no metric", from, missing)
		}
	}
	if missing := unknownNames("rate(paddock_losses_total[5m])", metrics); len(missing) != 1 {
		t.Error("a name that is wrong would not be found")
	}
}

// unknownNames returns the names in the text that are like those of Paddock's metrics, and are none.
func unknownNames(text string, metrics map[string]bool) (unknown []string) {
	for _, name := range regexp.MustCompile(`\bpaddock_\w+`).FindAllString(text, -1) {
		if !metrics[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}
