package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/verify/workload"
)

func TestInterruptedVerifyChecksTheCallsUntilThen(t *testing.T) {
	t.Parallel()
	base := serveHere(t, pgtest.URL(t))
	p := start(t, "verify", "--url", base, "--for=1h", "--ttl=300ms")
	prefix := p.Stdout.Await(t, "All names begin with (verify:[^:]+:)")
	locks := replica.Connect(t, client.Options{BaseURL: base})
	await.Until(t, "a lock is used", func() bool {
		page, err := locks.Events(t.Context(), paddock.EventQuery{Prefix: prefix, Limit: 1})
		mustBeNil(t, err)
		return len(page.Items) > 0
	})
	if code := p.Signal(t, syscall.SIGINT); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if said := p.Stdout.String(); !strings.Contains(said, "OK: ") {
		t.Errorf("stdout:\n%s", said)
	}
}

func TestVerifyInterruptedBeforeItsFirstCallReportsIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := new(proctest.Transcript)
	v := &verification{program: &program{stdout: out, stderr: &console{w: out}}, verifyCommand: &verifyCommand{For: time.Hour}}
	if err := v.run(ctx); err != nil {
		t.Fatal(err)
	}
	if said := out.String(); !strings.Contains(said, "nothing was verified") {
		t.Errorf("output %q", said)
	}
}

func TestLongVerificationHasRounds(t *testing.T) {
	t.Parallel()
	base, out := serveHere(t, pgtest.URL(t)), new(proctest.Transcript)
	c := &verifyCommand{URL: []string{base}, Clients: 8, Locks: 4, Operations: 240, TTL: lock.MinTTL, Prefix: "verify"}
	replicas, err := c.replicas()
	if err != nil {
		t.Fatal(err)
	}
	v := &verification{program: &program{stdout: out, stderr: &console{w: out}}, verifyCommand: c, replicas: replicas, names: []string{"verify:1"},
		perRound: 80}
	if err := v.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if said := out.String(); strings.Count(said, "OK: ") < 2 || !strings.Contains(said, "rounds, no violation") {
		t.Errorf("stdout:\n%s", said)
	}
}

// A brokenService confirms releases without doing them.
type brokenService struct{ paddock.Service }

func (brokenService) Release(context.Context, lock.Release) error { return nil }

func TestVerifyDetectsAViolation(t *testing.T) {
	t.Parallel()
	url := replica.Serve(t, server.Options{Locks: brokenService{memlock.New().Replica(1)}})
	report := filepath.Join(t.TempDir(), "report.html")
	code, stdout, stderr := call(t, nil, "verify", "--url", url, "--operations=200", "--ttl=100ms", "--report", report)
	if code != exitFailed || !strings.Contains(stdout, "VIOLATED") || !strings.Contains(stdout, report) ||
		!strings.Contains(stderr, "has broken a promise") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	page, err := os.ReadFile(report)
	if err != nil || !strings.Contains(strings.ToLower(string(page)), "<html") {
		t.Errorf("the report is %.200q, %v", page, err)
	}
}

// TestVerifyRefusesTwoDeployments: their answers would contradict each other.
func TestVerifyRefusesTwoDeployments(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	a, b, other := serveHere(t, databaseURL), serveHere(t, databaseURL), serveHere(t, pgtest.URL(t))
	code, stdout, stderr := call(t, nil, "verify", "--url", a, "--url", b, "--url", other, "--operations=100")
	if code != exitUsage || stdout != "" || !strings.Contains(stderr, other+" does not know") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, nil, "verify", "--url", a, "--url", b, "--operations=100", "--ttl=200ms"); code != exitOK {
		t.Errorf("of one deployment: exit code %d:\n%s%s", code, stdout, stderr)
	}
}

func TestVerifyFailsOnAnUnexpectedRefusal(t *testing.T) {
	t.Parallel()
	base := serveHere(t, pgtest.URL(t), "--min-ttl=10s")
	code, stdout, stderr := call(t, nil, "verify", "--url", base, "--operations=100")
	if code != exitUsage || !strings.Contains(stderr, "--ttl is ") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

func TestVerifySendsItsKey(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	for want, k := range map[int]issuedKey{
		exitOK: h.newLoadedKey(access.Lock, "verify"), exitNotAllowed: h.newLoadedKey(access.Read, "verify"),
	} {
		env := map[string]string{"PADDOCK_KEY": k.secret}
		code, stdout, stderr := call(t, env, "verify", "--url", h.base, "--operations=100", "--ttl=200ms")
		if code != want || strings.Contains(stdout+stderr, k.secret) {
			t.Errorf("with the role %v the exit code is %d, want %d:\n%s%s", k.Role, code, want, stdout, stderr)
		}
	}
	if code, stdout, stderr := call(t, nil, "verify", "--url", h.base); code != exitNotAllowed || stdout != "" {
		t.Errorf("without a key the exit code is %d:\n%s%s", code, stdout, stderr)
	}
}

// TestVerifyUsesWhatItMay: a key of the role admin for names under the prefix is enough for all that there is.
func TestVerifyUsesWhatItMay(t *testing.T) {
	t.Parallel()
	const noAdmin, noHold = "The API key lacks the role admin", "The service refuses on_expiry hold"
	for what, c := range map[string]struct {
		role    access.Role
		args    []string
		says    string // empty: neither of the two lines
		happens []lock.Kind
		never   []lock.Kind
	}{
		"all of it":           {access.Admin, []string{"--allow-hold"}, "", []lock.Kind{lock.Revoked, lock.Frozen, lock.Suspected}, nil},
		"hold is refused":     {access.Admin, nil, noHold, []lock.Kind{lock.Revoked, lock.Frozen}, []lock.Kind{lock.Suspected}},
		"no role for changes": {access.Lock, []string{"--allow-hold"}, noAdmin, []lock.Kind{lock.Expired}, []lock.Kind{lock.Revoked, lock.Frozen, lock.Suspected}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newKeyedReplica(t, c.args...)
			k := h.newLoadedKey(c.role, "verify")
			keyFile := filepath.Join(t.TempDir(), "key")
			mustBeNil(t, os.WriteFile(keyFile, []byte(k.secret), 0o600))
			locks, happened := replica.Connect(t, client.Options{BaseURL: h.base, Key: k.secret}), map[lock.Kind]bool{}
			q := paddock.EventQuery{Prefix: "verify:", Limit: paddock.MaxLimit}
			readEvents := func() (n int) {
				page, err := locks.Events(t.Context(), q)
				mustBeNil(t, err)
				for _, e := range page.Items {
					happened[e.Kind] = true
				}
				q.Cursor = page.Next
				return len(page.Items)
			}
			p := start(t, "verify", "--url", h.base, "--key-file", keyFile, "--for=1h", "--ttl=100ms")
			await.Until(t, "each mechanism is used", func() bool {
				readEvents()
				return !slices.ContainsFunc(c.happens, func(kind lock.Kind) bool { return !happened[kind] })
			})
			code, said := p.Signal(t, syscall.SIGINT), p.Stdout.String()
			if code != exitOK || strings.Contains(said, noAdmin) != (c.says == noAdmin) || strings.Contains(said, noHold) != (c.says == noHold) {
				t.Errorf("exit code %d:\n%s", code, said)
			}
			for readEvents() > 0 {
			}
			for _, kind := range c.never {
				if happened[kind] {
					t.Errorf("an event is %s", kind)
				}
			}
			page, err := locks.Locks(t.Context(), paddock.LockQuery{Prefix: "verify:", State: lock.Suspect, Limit: 1})
			mustBeNil(t, err)
			if len(page.Items) > 0 {
				t.Errorf("left suspect: %+v", page.Items)
			}
		})
	}
}

func TestVerifyNeedsAReachableService(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, nil, "verify", "--url=http://127.0.0.1:1")
	if code != exitUnreachable || stdout != "" || !strings.Contains(stderr, "at http://127.0.0.1:1: unavailable") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}

func TestVerifyDefaultsEqualThoseOfTheWorkload(t *testing.T) {
	t.Parallel()
	var line commandLine
	if _, err := parse(&line, []string{"verify"}, &sources{env: variablesOf(nil)}, t.Output()); err != nil {
		t.Fatal(err)
	}
	if v := line.Verify; v.Clients != workload.DefaultClients || v.Locks != workload.DefaultLocks ||
		v.TTL != workload.DefaultTTL {
		t.Errorf("parsed %+v", v)
	}
}

// TestVerifyTriesItsReportFirst, before it asks a service.
func TestVerifyTriesItsReportFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept.html")
	mustBeNil(t, os.WriteFile(kept, []byte("before"), 0o600))
	for path, want := range map[string]int{
		filepath.Join(dir, "nowhere", "a.html"): exitUsage, dir: exitUsage, filepath.Join(dir, "new.html"): exitUnreachable, kept: exitUnreachable,
	} {
		code, _, stderr := call(t, nil, "verify", "--url=http://127.0.0.1:1", "--report", path)
		if code != want || want == exitUsage && !strings.Contains(stderr, "in a folder that exists") {
			t.Errorf("--report %s: exit code %d, want %d:\n%s", path, code, want, stderr)
		}
	}
	text, err := os.ReadFile(kept)
	if files, _ := os.ReadDir(dir); err != nil || string(text) != "before" || len(files) != 1 {
		t.Errorf("afterwards there are %v, and the file has %q, %v", files, text, err)
	}
}

// TestVerifyUsesAllCells of a service that has three, and only one with an API key for one group.
func TestVerifyUsesAllCells(t *testing.T) {
	t.Parallel()
	var given []string
	urls := map[string]string{"main": pgtest.URL(t), "spare": pgtest.URL(t), "third": pgtest.URL(t)}
	for name, url := range urls {
		given = append(given, name+"="+url)
	}
	env := map[string]string{"PADDOCK_CELL": strings.Join(given, ","), "DATABASE_URL": ""}
	if code, out, stderr := call(t, env, "migrate", "up"); code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, out, stderr)
	}
	keys := filepath.Join(t.TempDir(), "keys.json")
	key := func(flags ...string) string {
		t.Helper()
		code, out, stderr := call(t, nil, append([]string{"key", "new", "--auth-file", keys}, flags...)...)
		if code != exitOK {
			t.Fatalf("exit code %d: %s%s", code, out, stderr)
		}
		return strings.TrimSpace(out)
	}
	admin, limited := key("--role=admin", "everything"), key("--role=lock", "--prefix=verify", "one-group")
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--cell", env["PADDOCK_CELL"], "--auth-file", keys)
	base := "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
	used := func(name string) (cells int64) {
		t.Helper()
		for _, url := range urls {
			const sql = "select count(*) from (select from paddock.records where name like '%' || $1 || '%' limit 1) r"
			cells += pgtest.Number(t, pgtest.Connect(t, url), sql, name)
		}
		return cells
	}
	for _, c := range []struct {
		key, said string
		cells     int64
	}{{admin, "They are in 3 of the cells ", 3}, {limited, "covers no group in another cell", 1}} {
		code, out, stderr := call(t, map[string]string{"PADDOCK_KEY": c.key}, "verify", "--url", base, "--operations=900", "--ttl=300ms")
		if code != exitOK || !strings.Contains(out, "OK: no violations") || !strings.Contains(out, c.said) {
			t.Errorf("exit code %d:\n%s%s", code, out, stderr)
			continue
		}
		_, names, _ := strings.Cut(out, "All names begin with ")
		cells := int64(0)
		for name := range strings.SplitSeq(strings.SplitN(names, ": and", 2)[0], ": or ") {
			if n := used(name); n != 1 {
				t.Errorf("%s is in %d cells", name, n)
			}
			cells++
		}
		if cells != c.cells {
			t.Errorf("%d groups were used, want %d:\n%s", cells, c.cells, out)
		}
	}
}
