package proxies_test

import (
	"bufio"
	"context"
	"flag"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/paddock-lock/paddock/test/internal/tools"
)

var (
	cut     = flag.Duration("proxies.cut", 2*time.Second, "after how long the proxies cut a call that is not answered; 0: as docs/deploy.md says")
	waiters = flag.Int("proxies.waiters", 12, "how many waiters there are at each proxy")
	hold    = flag.Duration("proxies.hold", 7*time.Second, "how long all of them wait")
)

var built program.Built

func TestMain(m *testing.M) { built.Main(m) }

// A proxy is a program in front of a replica. Its configuration is the block of docs/deploy.md in its language, with what
// a test needs: changes are what to replace, each of which the page has once.
type proxy struct {
	name    string
	args    []string
	block   string
	changes [][2]string
	limit   [2]string // what to replace so that calls are cut after CUT
	around  string    // the file, with the block at BLOCK
}

// The proxies that Debian has.
var proxies = []proxy{
	{
		name:  "nginx",
		args:  []string{"-e", "stderr", "-c"},
		block: "nginx",
		changes: [][2]string{
			{"listen 443 ssl;", "listen ADDRESS;"},
			{"ssl_certificate /etc/nginx/locks.pem;", ""},
			{"ssl_certificate_key /etc/nginx/locks.key;", ""},
			{"server 10.0.0.1:8080;", "server UPSTREAM;"},
			{"server 10.0.0.2:8080;", ""},
		},
		limit: [2]string{"proxy_read_timeout 75s;", "proxy_read_timeout CUT;"},
		around: `
daemon off;
master_process off;
pid DIR/pid;
events {}
http {
  access_log off;
  client_body_temp_path DIR/1; proxy_temp_path DIR/2; fastcgi_temp_path DIR/3; uwsgi_temp_path DIR/4; scgi_temp_path DIR/5;
  BLOCK
}
`,
	},
	{
		name:  "haproxy",
		args:  []string{"-db", "-f"},
		block: "haproxy",
		changes: [][2]string{
			{"bind :443 ssl crt /etc/haproxy/locks.pem", "bind ADDRESS"},
			{"server a 10.0.0.1:8080 check", "server a UPSTREAM check"},
			{"server b 10.0.0.2:8080 check", ""},
		},
		limit:  [2]string{"timeout server 75s", "timeout server CUT"},
		around: "BLOCK",
	},
	{
		name:  "caddy",
		args:  []string{"run", "--adapter", "caddyfile", "--config"},
		block: "caddyfile",
		changes: [][2]string{
			{"locks.example {", "http://ADDRESS {"},
			{"10.0.0.1:8080 10.0.0.2:8080", "UPSTREAM"},
		},
		limit: [2]string{"health_uri /readyz", "health_uri /readyz\n    transport http {\n      response_header_timeout CUT\n    }"},
		around: `
{
  admin off
  auto_https off
}
BLOCK
`,
	},
}

// config returns the configuration of the page, changed for a test.
func (p proxy) config(t *testing.T, address, upstream, dir string, after time.Duration) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/deploy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```"+p.block+"\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("docs/deploy.md has no block for %s", p.block)
	}
	changes := p.changes
	if after > 0 {
		changes = append(slices.Clone(changes), p.limit)
	}
	for _, c := range changes {
		if strings.Count(text, c[0]) != 1 {
			t.Fatalf("the block of docs/deploy.md for %s does not have %q once; change the test with it:\n%s", p.block, c[0], text)
		}
		text = strings.Replace(text, c[0], c[1], 1)
	}
	return strings.NewReplacer("ADDRESS", address, "UPSTREAM", upstream, "DIR", dir, "CUT", after.String()).
		Replace(strings.Replace(p.around, "BLOCK", text, 1))
}

// start runs the proxy in front of the service until the test ends, and returns its base URL. Calls that are not
// answered are cut after the duration; 0: as the page says.
func (p proxy) start(t *testing.T, service string, after time.Duration) string {
	t.Helper()
	upstream, err := url.Parse(service)
	if err != nil {
		t.Fatal(err)
	}
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	address := freeport.Address(port)
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(p.config(t, address, upstream.Host, dir, after)), 0o600); err != nil {
		t.Fatal(err)
	}
	program := proctest.New(exec.Command(tools.Path(t, p.name), append(p.args, file)...))
	program.Cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	program.Start(t)
	for until := time.Now().Add(proctest.Patience); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			return "http://" + address
		}
		select {
		case <-program.Ended():
			t.Fatalf("%s has ended", p.name)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// cuts counts the waits that a proxy cuts.
type cuts struct {
	http.RoundTripper
	n atomic.Int32
}

func (c *cuts) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.RoundTripper.RoundTrip(r)
	if err != nil && r.Context().Err() == nil || err == nil && (res.StatusCode == http.StatusBadGateway || res.StatusCode == http.StatusGatewayTimeout) {
		c.n.Add(1)
	}
	return res, err
}

func TestWaitersKeepTheirOrderThroughAProxy(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	_, base := built.Serve(t, databaseURL)
	direct := connect(t, base, http.DefaultTransport)
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			through := p.start(t, base, *cut)
			holder, err := guard.Acquire(t.Context(), direct, p.name, guard.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var order []int
			var all sync.WaitGroup
			counts := make([]cuts, *waiters)
			for i := range counts {
				counts[i].RoundTripper = &http.Transport{}
				all.Go(func() {
					defer counts[i].RoundTripper.(*http.Transport).CloseIdleConnections()
					l, err := guard.Acquire(t.Context(), connect(t, through, &counts[i]), p.name, guard.Options{Wait: guard.Forever})
					if err != nil {
						t.Errorf("waiter %d: %v", i, err)
						return
					}
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
					if err := l.Release(t.Context()); err != nil {
						t.Errorf("waiter %d: %v", i, err)
					}
				})
				awaitQueue(t, direct, p.name, i+1)
			}
			time.Sleep(*hold)
			awaitQueue(t, direct, p.name, *waiters)
			if err := holder.Release(t.Context()); err != nil {
				t.Error(err)
			}
			all.Wait()
			if !slices.IsSorted(order) || len(order) != *waiters {
				t.Errorf("the waiters got the lock in the order %v", order)
			}
			for i := range counts {
				switch n := counts[i].n.Load(); {
				case *cut > 0 && n == 0:
					t.Errorf("no wait of waiter %d was cut", i)
				case n > 1:
					t.Errorf("waiter %d has learned nothing: %d of its waits were cut", i, n)
				}
			}
		})
	}
}

// TestStreamsPassThroughAProxy reads an event through each proxy before a stream that was opened earlier is kept alive by
// a comment: a proxy that buffers keeps the event until there is more.
func TestStreamsPassThroughAProxy(t *testing.T) {
	t.Parallel()
	_, base := built.Serve(t, pgtest.URL(t))
	direct := connect(t, base, http.DefaultTransport)
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			idle := openStream(t.Context(), t, base, "idle")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				idle.next(": still here")
				cancel()
			}()
			through := openStream(ctx, t, p.start(t, base, 0), p.name)
			if _, err := guard.Acquire(t.Context(), direct, p.name, guard.Options{}); err != nil {
				t.Fatal(err)
			}
			if !through.next("event: granted") {
				t.Errorf("the grant did not come through: %v", through.Err())
			}
		})
	}
}

// A stream is the lines of an event stream.
type stream struct{ *bufio.Scanner }

// openStream opens the stream of a lock, which ends with the context.
func openStream(ctx context.Context, t *testing.T, base, name string) stream {
	t.Helper()
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/events/stream?lock="+name, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(call)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
	})
	return stream{bufio.NewScanner(answer.Body)}
}

// next reads up to the line, and reports whether it came.
func (s stream) next(line string) bool {
	for s.Scan() {
		if s.Text() == line {
			return true
		}
	}
	return false
}

// awaitQueue waits until so many waiters are in the queue.
func awaitQueue(t *testing.T, locks paddock.Service, name string, size int) {
	t.Helper()
	for w := (paddock.Watch{Name: name, Wait: lock.MaxWait}); ; {
		l, err := locks.Watch(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if l.Waiters == size {
			return
		}
		w.Seen = l.Version()
	}
}

func connect(t *testing.T, base string, transport http.RoundTripper) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{BaseURL: base, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
