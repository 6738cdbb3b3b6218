package fleet_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/freeport"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/test/internal/program"
)

var (
	lasts     = flag.Duration("fleet.for", 12*time.Second, "how long replicas fail")
	every     = flag.Duration("fleet.every", 4*time.Second, "a replica fails so often")
	size      = flag.Int("fleet.clients", 10, "how many leases, and how many waiters, each worker has")
	languages = flag.String("fleet.languages", "go,threads,asyncio", "of go, threads, asyncio (both Python) and typescript")
)

// workerName is the variable with the name of the Go worker that this test binary is to be.
const workerName = "PADDOCK_FLEET_WORKER"

var built program.Built

func TestMain(m *testing.M) {
	if name := os.Getenv(workerName); name != "" {
		flag.Parse() // otherwise the tests do
		if err := work(os.Getenv("PADDOCK_URL"), name, *size); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	built.Main(m)
}

func TestClientsOutliveReplicasThatAreKilled(t *testing.T) {
	t.Parallel()
	testClients(t, (*replica).killAndRestart)
}

func TestClientsOutliveReplicasThatFreeze(t *testing.T) {
	t.Parallel()
	testClients(t, (*replica).freeze)
}

// A replica is paddock serve at an address of its own.
type replica struct {
	*proctest.Process
	databaseURL string
	port        int
}

func (r *replica) start(t *testing.T) {
	t.Helper()
	r.Process = built.Start(t, "serve", "--listen", freeport.Address(r.port), "--database-url", r.databaseURL)
	r.Stderr.Await(t, `("msg":"listening")`)
}

// killAndRestart kills the replica, and starts it again after half of the time.
func (r *replica) killAndRestart(t *testing.T, lasts time.Duration) {
	t.Helper()
	r.Kill(t)
	time.Sleep(lasts / 2)
	r.start(t)
	time.Sleep(lasts / 2)
}

// freeze stops the replica for half of the time: it keeps its connections, and answers nothing.
func (r *replica) freeze(t *testing.T, lasts time.Duration) {
	t.Helper()
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := r.Cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lasts / 2)
	}
}

func testClients(t *testing.T, fail func(*replica, *testing.T, time.Duration)) {
	databaseURL := pgtest.URL(t)
	var replicas []*replica
	var urls []string
	for range 2 {
		port, err := freeport.Find()
		if err != nil {
			t.Fatal(err)
		}
		r := &replica{databaseURL: databaseURL, port: port}
		r.start(t)
		replicas, urls = append(replicas, r), append(urls, "http://"+freeport.Address(port))
	}
	url := strings.Join(urls, ",")
	locks, err := client.New(client.Options{BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	workers := make(map[string]*fleetWorker)
	holders := make(map[string]*guard.Lease)
	for name := range strings.SplitSeq(*languages, ",") {
		if holders[name], err = guard.Acquire(t.Context(), locks, name+":queue", guard.Options{TTL: 15 * time.Second}); err != nil {
			t.Fatal(err)
		}
		workers[name] = startWorker(t, name, url)
	}
	for name, w := range workers {
		w.Stdout.Await(t, `(?m)^(held)$`)
		awaitQueue(t, locks, name+":queue")
	}
	for i, until := 0, time.Now().Add(*lasts); time.Now().Before(until); i++ {
		fail(replicas[i%2], t, *every)
	}
	for name, w := range workers {
		if err := holders[name].Release(t.Context()); err != nil {
			t.Errorf("the holder of the queue of %s: %v", name, err)
		}
		w.Stdout.Await(t, fmt.Sprintf(`(?s)((?:turn \d+\n.*){%d})`, *size))
		if err := w.stdin.Close(); err != nil {
			t.Error(err)
		}
		if code := w.Exit(t); code != 0 || strings.Contains(w.Stdout.String(), "lost") {
			t.Errorf("the worker %s: exit code %d:\n%s", name, code, w.Stdout)
		}
	}
	for name := range workers {
		checkHistory(t, locks, name)
	}
}

// A fleetWorker is a running worker.
type fleetWorker struct {
	*proctest.Process
	stdin io.Closer
}

func startWorker(t *testing.T, name, url string) *fleetWorker {
	t.Helper()
	clients := fmt.Sprint(*size)
	sdk, err := filepath.Abs("../../sdk")
	if err != nil {
		t.Fatal(err)
	}
	var cmd *exec.Cmd
	switch name {
	case "go":
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(self, "-fleet.clients", clients)
		cmd.Env = append(os.Environ(), workerName+"="+name, "PADDOCK_URL="+url)
	case "typescript":
		cmd = exec.Command("node", "worker.mjs", "file://"+filepath.Join(sdk, "typescript/dist/index.js"), url, name, clients)
	default:
		cmd = exec.Command("python3", "worker.py", name, url, clients)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(sdk, "python"), "PYTHONDONTWRITEBYTECODE=1")
	}
	w := &fleetWorker{Process: proctest.New(cmd)}
	if w.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	w.Start(t)
	return w
}

// awaitQueue waits until all waiters are in the queue.
func awaitQueue(t *testing.T, locks paddock.Service, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	for w := (paddock.Watch{Name: name, Wait: lock.MaxWait}); ; {
		l, err := locks.Watch(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		if l.Waiters == *size {
			return
		}
		w.Seen = l.Version()
	}
}

// checkHistory checks that each lease was held from its grant to its release, and that each waiter joined the queue once
// and was granted the lock in its turn.
func checkHistory(t *testing.T, locks paddock.Service, name string) {
	t.Helper()
	for i := range *size {
		if kinds := kindsOf(history(t, locks, fmt.Sprintf("%s:held:%d", name, i))); kinds != "granted released" {
			t.Errorf("%s:held:%d: %s", name, i, kinds)
		}
	}
	joined := make(map[string]int64)
	last := int64(0)
	for _, e := range history(t, locks, name+":queue") {
		switch e.Kind {
		case lock.Queued:
			if first, again := joined[e.Holder]; again {
				t.Errorf("waiter %s of %s joined at place %d, and again at %d", e.Holder, name, first, e.Place)
			}
			joined[e.Holder] = e.Place
		case lock.Granted:
			if e.Place != 0 && e.Place < last {
				t.Errorf("waiter %s of %s at place %d had its turn after place %d", e.Holder, name, e.Place, last)
			}
			last = max(last, e.Place)
		case lock.Released:
		default:
			t.Errorf("%s:queue: %v of %s: %s", name, e.Kind, e.Holder, e.Explanation())
		}
	}
	if len(joined) != *size {
		t.Errorf("%d waiters of %s have joined, not %d", len(joined), name, *size)
	}
}

func history(t *testing.T, locks paddock.Service, name string) (events []lock.Event) {
	t.Helper()
	for q := (paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit}); ; {
		page, err := locks.Events(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, page.Items...); len(page.Items) < paddock.MaxLimit {
			return events
		}
		q.Cursor = page.Next
	}
}

func kindsOf(events []lock.Event) string {
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, e.Kind.String())
	}
	return strings.Join(kinds, " ")
}
