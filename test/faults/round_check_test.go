package faults_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// verify checks the history and logs the summary.
func (p *round) verify(t *testing.T) {
	t.Helper()
	h, err := p.history(t.Context())
	if err != nil {
		t.Errorf("collect the events: %v", err)
	}
	report := h.Check(verify.CheckOptions{AllowOvertaking: true})
	p.summary.add(h, report)
	p.summary.took, p.summary.lost = time.Since(p.began), p.lostCommits()
	var checks strings.Builder
	if err := errors.Join(report.WriteText(&checks), p.checkLogs(h), p.summary.check()); err != nil {
		t.Error(err)
	}
	t.Logf("%v\n%s", p.summary, checks.String())
	if !report.OK() {
		t.Error("the checker found violations")
	}
	if t.Failed() {
		dir, err := p.saveReport(h, report)
		if err != nil {
			t.Error(err)
		}
		t.Errorf("violations and logs are in %s; repeat the schedule with -faults.seed=%d", dir, p.seed)
	}
}

// history returns the history with its events.
func (p *round) history(ctx context.Context) (verify.History, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*stepTimeout)
	defer cancel()
	h := p.recorder.History()
	c, err := p.replicas[0].client()
	if err == nil {
		h.Events, err = verify.Collect(ctx, c, p.prefix())
	}
	return h, err
}

// saveReport writes what is needed to find the cause of a failure to a directory that stays, and returns its
// path.
func (p *round) saveReport(h verify.History, report verify.Report) (dir string, err error) {
	dir, err = os.MkdirTemp("", fmt.Sprintf("paddock-faults-%d-*", p.seed))
	if err != nil {
		return "", err
	}
	for name, write := range map[string]func(io.Writer) error{
		"violations.txt":  report.WriteText,
		"violations.html": report.WriteHTML,
		"summary.txt":     func(w io.Writer) error { _, err := io.WriteString(w, p.summary.String()); return err },
		"history.txt":     func(w io.Writer) error { return writeHistory(w, h) },
	} {
		err = errors.Join(err, writeFile(filepath.Join(dir, name), write))
	}
	for _, r := range p.replicas {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, r.String()+".log"), r.log.bytes(), 0o600))
	}
	return dir, err
}

// writeHistory writes all calls and events, without secrets.
func writeHistory(w io.Writer, h verify.History) error {
	out := bufio.NewWriter(w)
	for _, c := range h.Calls {
		fmt.Fprintf(out, "%4.6f to %4.6f  client %d, %s: %s %+v\n\t%+v, %v\n", c.Sent.Seconds(), c.Answered.Seconds(),
			c.Client, c.Via, c.Verb, c.Request, c.Response, c.Err)
	}
	for _, e := range h.Events {
		fmt.Fprintf(out, "%+v\n", e)
	}
	for _, s := range h.Subscriptions {
		writeSubscription(out, s)
	}
	return out.Flush()
}

// writeSubscription writes a subscriber's requests and the ids of the events it received.
func writeSubscription(out io.Writer, s verify.Subscription) {
	for _, r := range s.Requests {
		fmt.Fprintf(out, "%s %d, %s: sent %.6f, opened %.6f, over %.6f after %d, failed %v\n",
			s.Kind, s.Number, r.Via, r.Sent.Seconds(), r.Opened.Seconds(), r.Ended.Seconds(), r.Cursor, r.Failed)
		for _, d := range r.Deliveries {
			fmt.Fprintf(out, "\t%.6f: next %d, gap %v, events", d.At.Seconds(), d.Next, d.Gap)
			for _, e := range d.Events {
				fmt.Fprintf(out, " %d", e.ID)
			}
			fmt.Fprintln(out)
		}
	}
}

// writeFile creates a file with what write writes.
func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// leftovers are what must be gone from the database soon after the last client, with queries that count them.
var leftovers = []struct{ what, count string }{
	{"connections of Paddock in a transaction",
		"select count(*) from pg_catalog.pg_stat_activity where application_name = 'paddock' and state <> 'idle'"},
	{"advisory locks", "select count(*) from pg_catalog.pg_locks where locktype = 'advisory'"},
	{"waiters", "select count(*) from paddock.parts where place > 0"},
	{"leases", "select (select count(*) from paddock.records where lease_id is not null) + " +
		"(select count(*) from paddock.parts where place = 0)"},
}

// revokeSuspects revokes the leases that nobody has ended, and returns once all locks are free.
func (p *round) revokeSuspects(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	c, err := p.replicas[0].client()
	if err != nil {
		return err
	}
	return workload.WaitUntilFree(ctx, p.recorder.Client(p.replicas[0].String(), c), p.prefix())
}

// awaitCleanup waits until there are no leftovers.
func (d *deployment) awaitCleanup(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	conn, err := d.database.connect(ctx, "paddock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, l := range leftovers {
		err := retry(ctx, func() error {
			var n int
			if err := conn.QueryRow(ctx, l.count).Scan(&n); err != nil || n == 0 {
				return err
			}
			return fmt.Errorf("there are still %d %s", n, l.what)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// retry calls try until it succeeds or ctx ends, and returns the last error.
func retry(ctx context.Context, try func() error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w, and %w", err, context.Cause(ctx))
		}
	}
}

// checkReplicasServe acquires, renews and releases a lock through each replica.
func (p *round) checkReplicasServe(ctx context.Context, prefix string) error {
	return inParallel(len(p.replicas), func(i int) error {
		r := p.replicas[i]
		c, err := r.client()
		if err != nil {
			return err
		}
		locks := p.recorder.Client(r.String(), c)
		ctx, cancel := context.WithTimeout(ctx, stepTimeout)
		defer cancel()
		name, id := fmt.Sprintf("%s:probe:%d", prefix, r.number), lock.LeaseID(uuid.New())
		for _, call := range []func() error{
			func() error {
				_, err := locks.Acquire(ctx,
					lock.Acquire{Locks: lock.One(name), LeaseID: id, Holder: "the probe of " + r.String(), TTL: time.Minute})
				return err
			},
			func() error { _, err := locks.Renew(ctx, lock.Renew{Locks: []string{name}, LeaseID: id}); return err },
			func() error { return locks.Release(ctx, lock.Release{Locks: []string{name}, LeaseID: id}) },
		} {
			if err := retry(ctx, call); err != nil {
				return fmt.Errorf("%v does not serve: %w", r, err)
			}
		}
		return nil
	})
}

// checkLogs returns an error if a replica's log has a crash or a secret.
func (d *deployment) checkLogs(h verify.History) error {
	secret := secretsOf(h)
	var err error
	for _, r := range d.replicas {
		for line := range bytes.Lines(r.log.bytes()) {
			if text := d.forbiddenInLog(line, secret); text != "" {
				err = errors.Join(err, fmt.Errorf("the log of %v has %s", r, text))
			}
		}
	}
	return err
}

// forbiddenInLog returns what is wrong with a line of a log, empty if nothing is.
func (d *deployment) forbiddenInLog(line []byte, secret map[lock.LeaseID]bool) string {
	for _, breakdown := range []string{"panic", "fatal error:", "WARNING: DATA RACE"} {
		if bytes.Contains(line, []byte(breakdown)) {
			return string(line)
		}
	}
	if bytes.Contains(line, []byte(d.database.password)) {
		return "the password"
	}
	for _, word := range bytes.FieldsFunc(line, notInUUID) {
		if id, err := uuid.ParseBytes(word); err == nil && secret[lock.LeaseID(id)] {
			return "a lease_id"
		}
	}
	return ""
}

// notInUUID reports whether the rune cannot be part of a UUID.
func notInUUID(letter rune) bool {
	return letter != '-' && (letter < '0' || letter > '9') && (letter < 'a' || letter > 'f') &&
		(letter < 'A' || letter > 'F')
}

// lostCommits returns how many commits had no answer, according to the logs.
func (d *deployment) lostCommits() int {
	n := 0
	for _, r := range d.replicas {
		n += bytes.Count(r.log.bytes(), []byte(`"msg":"commit outcome unknown"`))
	}
	return n
}

func secretsOf(h verify.History) map[lock.LeaseID]bool {
	secret := map[lock.LeaseID]bool{}
	for _, c := range h.Calls {
		if a, ok := c.Request.(lock.Acquire); ok {
			secret[a.LeaseID] = true
		}
	}
	return secret
}

// checkClocks returns an error unless each replica's clock has its skew.
func (d *deployment) checkClocks() error {
	var err error
	for _, r := range d.replicas {
		line, _, _ := bytes.Cut(r.log.bytes(), []byte("\n"))
		var first struct{ Time time.Time }
		if e := json.Unmarshal(line, &first); e != nil {
			err = errors.Join(err, e)
		}
		if off := time.Until(first.Time); (off - r.skew).Abs() > 5*time.Minute {
			err = errors.Join(err, fmt.Errorf("the clock of %v is off by %v, want %v", r, off, r.skew))
		}
	}
	return err
}

// A summary sums up a round.
type summary struct {
	seed        uint64
	injected    map[string]int // faults by name
	operations  int
	unknown     int
	violations  int
	subscribers workload.SubscriberStats
	lost        int   // commits without an answer
	rates       []int // calls in the second before each fault, in ascending order
	took        time.Duration
	longest     time.Duration // longest time until the deployment was under load again
	after       string        // fault that caused it
	settled     time.Duration
}

// add adds the history and its report.
func (s *summary) add(h verify.History, report verify.Report) {
	s.operations = report.Operations
	for _, c := range report.Checks {
		s.violations += len(c.Violations)
	}
	var answered []time.Duration
	for _, c := range h.Calls {
		switch c.Outcome() {
		case verify.Unknown:
			s.unknown++
		case verify.Done, verify.Refused:
			answered = append(answered, c.Answered)
		}
	}
	slices.Sort(answered)
	upTo := func(at time.Duration) int { n, _ := slices.BinarySearch(answered, at); return n }
	for _, f := range h.Faults {
		s.rates = append(s.rates, upTo(f.At)-upTo(f.At-time.Second))
	}
	slices.Sort(s.rates)
}

// idleFaults returns how many faults were injected without load.
func (s summary) idleFaults() int { n, _ := slices.BinarySearch(s.rates, minRate); return n }

// faults returns the number of faults.
func (s summary) faults() int { return len(s.rates) }

// check returns an error if the round proves nothing, or less than a full round must.
func (s summary) check() error {
	var err error
	if n := s.idleFaults(); 4*n > s.faults() {
		err = fmt.Errorf("too little load: before %d of %d faults, fewer than %d calls were answered in a second", n,
			s.faults(), minRate)
	}
	if s.faults() >= roundFaults && (s.operations < roundCalls || s.unknown == 0 || s.lost == 0) {
		err = errors.Join(err,
			errors.New("the faults had too little effect: too few operations, unknown outcomes or lost commits"))
	}
	return err
}

func (s summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %.0f s: %d operations checked, "+
		"%d faults of %d kinds injected, %d unknown outcomes met, %d violations\n",
		s.seed, s.took.Seconds(), s.operations, s.faults(), len(s.injected), s.unknown, s.violations)
	fmt.Fprintf(&b, "%v\n", s.subscribers)
	fmt.Fprintf(&b, "%d commits lost their answer from PostgreSQL\n", s.lost)
	if n := s.faults(); n > 0 {
		fmt.Fprintf(&b, "calls answered in the second before a fault: minimum %d, median %d; "+
			"before %d of %d faults fewer than %d\n",
			s.rates[0], s.rates[n/2], s.idleFaults(), n, minRate)
	}
	fmt.Fprintf(&b, "longest time until under load again: %.1f s, after %s\n", s.longest.Seconds(), s.after)
	fmt.Fprintf(&b, "afterwards every replica served, and everything was freed after %.1f s\n", s.settled.Seconds())
	s.writeKinds(&b)
	return b.String()
}

// writeKinds writes the number of faults of each kind.
func (s summary) writeKinds(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(s.injected)) {
		fmt.Fprintf(w, "%6d  %s\n", s.injected[name], name)
	}
}
