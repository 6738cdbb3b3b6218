package main

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

func TestCellsAreReadFromTheFlag(t *testing.T) {
	t.Parallel()
	const url = "postgres://u:p@h1:5432,h2:5432/db?application_name=a,b"
	all, err := database{cellFlag: cellFlag{Cell: []string{"main=" + url + ",spare=/etc/spare.url,third=" + url, "a-4=./url"}}}.cells()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range all {
		got = append(got, c.name+" "+c.URL+c.File)
	}
	if want := []string{"main " + url, "spare /etc/spare.url", "third " + url, "a-4 ./url"}; !slices.Equal(got, want) {
		t.Errorf("the cells are %q", got)
	}
	for text, want := range map[string]string{
		url: "no NAME=URL", "main=": "no NAME=URL", "Main=" + url: "a cell's name", "a=" + url + ",a=" + url: "a is given twice",
	} {
		if _, err := (database{cellFlag: cellFlag{Cell: []string{text}}}).cells(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	both := database{URL: url, cellFlag: cellFlag{Cell: []string{"main=" + url}}}
	if _, err := both.cells(); err == nil || !strings.Contains(err.Error(), "cannot be combined") {
		t.Errorf("with --database-url: %v", err)
	}
	if shown := shownCells([]string{"main=" + url + ",spare=/etc/spare.url", "secret"}); strings.Contains(strings.Join(shown, " "), "u:p@") ||
		shown[1] != "spare=/etc/spare.url" || shown[2] != notShown {
		t.Errorf("shown are %q", shown)
	}
}

// homeOf returns a lock whose home is the cell.
func homeOf(t *testing.T, cell string, cells ...placement.Cell) string {
	t.Helper()
	for _, group := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		if placement.Home(group, cells) == cell {
			return group + ":lock"
		}
	}
	t.Fatal("no group has its home in " + cell)
	return ""
}

// TestServeWithCells begins while one of two cells has no schema, as one that is away, and whose URL is in a file.
func TestServeWithCells(t *testing.T) {
	t.Parallel()
	main, spare := pgtest.EmptyURL(t), pgtest.EmptyURL(t)
	file := filepath.Join(t.TempDir(), "spare.url")
	write := func(url string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(url), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(spare)
	cells := "main=" + main + ",spare=" + file
	env := map[string]string{"PADDOCK_CELL": cells, "DATABASE_URL": ""}
	if code, out, stderr := call(t, env, "migrate", "up"); code != exitOK || !strings.Contains(out, "of cell main") || !strings.Contains(out, "Registered as cells: main, spare.") {
		t.Fatalf("migrate up ended with %d: %s%s", code, out, stderr)
	}
	if code, _, stderr := call(t, map[string]string{"PADDOCK_CELL": "main=" + spare + ",spare=" + main}, "serve", "--listen=127.0.0.1:0"); code == exitOK || !strings.Contains(stderr, "correct the URLs") {
		t.Errorf("with swapped URLs serve ended with %d: %s", code, stderr)
	}
	write("postgres://nobody:s3cret@127.0.0.1:1/paddock")
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--cell", cells)
	base := "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
	locks := replica.Connect(t, client.Options{BaseURL: base})
	both := []placement.Cell{{Name: "main", Takes: true}, {Name: "spare", Position: 1, Takes: true}}
	acquire := func(name string) error {
		_, err := locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One(name), Holder: "me", LeaseID: lock.LeaseID(uuid.New())})
		return err
	}
	if err := acquire(homeOf(t, "main", both...)); err != nil {
		t.Errorf("beside a cell that is away: %v", err)
	}
	if err := acquire(homeOf(t, "spare", both...)); !errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "spare") {
		t.Errorf("in the cell that is away: %v", err)
	}
	listed := func() string {
		_, out, _ := call(t, map[string]string{"PADDOCK_URL": base}, "cell", "list")
		return out
	}
	if out := listed(); !strings.Contains(out, "spare  away") || !strings.Contains(out, "main   ready") {
		t.Errorf("the cells are listed\n%s", out)
	}
	service := func() string {
		_, out, _ := call(t, map[string]string{"PADDOCK_URL": base}, "service")
		return out
	}
	var out string
	await.Until(t, "the replica has sent a heartbeat", func() bool {
		out = service()
		return strings.Contains(out, "alive")
	})
	if cell, away, found := strings.Cut(out, "Cell spare"); !found || !strings.Contains(cell, "Cell main") || strings.Contains(cell, "Problem") ||
		!strings.Contains(cell, "alive") || !strings.Contains(away, "Problem:  The database was not reachable yet") || strings.Contains(out, "s3cret") {
		t.Errorf("the service is shown as\n%s", out)
	}
	if ready := get(t, base+"/readyz"); !strings.Contains(ready, `"cells_away":["spare"]`) {
		t.Errorf("/readyz says %s", ready)
	}
	write(spare)
	await.Until(t, "the cell is back", func() bool { return strings.Contains(listed(), "spare  ready") })
	if err := acquire(homeOf(t, "spare", both...)); err != nil {
		t.Errorf("in the cell that is back: %v", err)
	}
	await.Until(t, "its part of the service is shown", func() bool { return strings.Count(service(), "alive") == 2 && !strings.Contains(service(), "Problem") })
	scraped := get(t, base+"/metrics")
	for _, line := range []string{`paddock_epoch{cell="main"} 1`, `paddock_epoch{cell="spare"} 1`, `paddock_acquires_total{cell="spare",mode="exclusive",outcome="granted"} 1`} {
		if !strings.Contains(scraped, line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	code, out, stderr := call(t, env, "epoch", "list")
	if code != exitOK || !strings.Contains(out, "CELL") || !strings.Contains(out, "spare") {
		t.Errorf("epoch list ended with %d: %s%s", code, out, stderr)
	}
	if code, _, stderr = call(t, env, "epoch", "open", "--reason=x"); code != exitUsage || !strings.Contains(stderr, "is about one database") {
		t.Errorf("epoch open of two cells ended with %d: %s", code, stderr)
	}
	if code, out, _ = call(t, env, "epoch", "open", "--reason=x", "--cell", "main="+main); code != exitOK || !strings.Contains(out, "not paused") {
		t.Errorf("epoch open ended with %d: %s", code, out)
	}
	if code, out, stderr = call(t, env, "serve", "--check", "--listen=127.0.0.1:0"); code != exitOK || !strings.Contains(out, "rights of cell spare") {
		t.Errorf("the check ended with %d: %s%s", code, out, stderr)
	}
}

// TestServeAnswersWithoutCells: no cell is reachable at the start, so calls are refused at once, with the names of the cells. It
// gives up when it has waited long enough.
func TestServeAnswersWithoutCells(t *testing.T) {
	t.Parallel()
	main, spare := tcpproxy.New(t, "127.0.0.1:1"), tcpproxy.New(t, "127.0.0.1:1")
	cells := "main=postgres://paddock@" + main.Address + "/paddock?sslmode=disable,spare=postgres://paddock@" + spare.Address + "/paddock?sslmode=disable"
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--cell", cells, "--wait-database=8s")
	base := "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/livez": {200, ""}, "/readyz": {503, "main, spare"}, "/v1/locks/a:b": {503, "main, spare"}, "/v1/cells": {200, "spare"}, "/ui/": {503, "Cell "},
		"/v1/locks": {503, `"Cell `},
	} {
		answer, err := http.Get(base + path)
		if err != nil {
			t.Error(err)
			continue
		}
		body, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != want.status || !strings.Contains(string(body), want.body) {
			t.Errorf("%s answers %d: %s, %v", path, answer.StatusCode, body, err)
		}
	}
	if code := p.Exit(t); code != exitUnreachable || !strings.Contains(p.Stderr.String(), "none of the cells main, spare") {
		t.Errorf("it ended with %d: %s", code, p.Stderr)
	}
}

// TestACellThatHangsIsBounded by --request-timeout: its database accepts everything and answers nothing, like a process that
// is stopped, or behind a network that drops packets. Calls in it are refused with its name, and others go on.
func TestACellThatHangsIsBounded(t *testing.T) {
	t.Parallel()
	main, spare := pgtest.URL(t), pgtest.URL(t)
	env := map[string]string{"PADDOCK_CELL": "main=" + main + ",spare=" + spare, "DATABASE_URL": ""}
	if code, out, stderr := call(t, env, "migrate", "up"); code != exitOK {
		t.Fatalf("migrate up ended with %d: %s%s", code, out, stderr)
	}
	u, err := url.Parse(spare)
	mustBeNil(t, err)
	q := u.Query()
	var hangs atomic.Bool
	line := tcpproxy.NewChanging(t, "unix", filepath.Join(q.Get("host"), ".s.PGSQL."+q.Get("port")), func(client io.Writer, server io.Reader) {
		for answer := make([]byte, 32<<10); ; {
			n, err := server.Read(answer)
			if err != nil {
				return
			}
			if hangs.Load() {
				continue
			}
			if _, err := client.Write(answer[:n]); err != nil {
				return
			}
		}
	})
	host, port, _ := strings.Cut(line.Address, ":")
	q.Set("host", host)
	q.Set("port", port)
	u.RawQuery = q.Encode()
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--cell", "main="+main, "--cell", "spare="+u.String(), "--request-timeout=1s")
	locks := replica.Connect(t, client.Options{BaseURL: "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)})
	p.Stderr.Await(t, `"(cell is open)","cell":"spare"`)
	both := []placement.Cell{{Name: "main", Takes: true}, {Name: "spare", Position: 1, Takes: true}}
	acquire := func(in string) (lock.Grant, error) {
		return locks.Acquire(t.Context(), lock.Acquire{Locks: lock.One(homeOf(t, in, both...) + uuid.NewString()), Holder: "me", LeaseID: lock.LeaseID(uuid.New())})
	}
	grants := func(cell string) { // a call may take longer than --request-timeout on a busy machine
		t.Helper()
		await.Until(t, "cell "+cell+" grants a lock", func() bool { _, err := acquire(cell); return err == nil })
	}
	grants("main")
	grants("spare")
	hangs.Store(true)
	for range 3 {
		if _, err := acquire("spare"); !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnknownOutcome) || !strings.Contains(err.Error(), "ell spare") {
			t.Errorf("in the cell that hangs: %v", err)
		}
		grants("main")
	}
	hangs.Store(false)
	grants("spare")
}
