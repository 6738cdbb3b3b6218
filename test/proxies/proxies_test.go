package proxies_test

import (
	"flag"
	"fmt"
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
	cut     = flag.Duration("proxies.cut", 2*time.Second, "after how long the proxies cut a call that is not answered; 0: as they do usually")
	waiters = flag.Int("proxies.waiters", 12, "how many waiters there are at each proxy")
	hold    = flag.Duration("proxies.hold", 7*time.Second, "how long all of them wait")
)

var built program.Built

func TestMain(m *testing.M) { built.Main(m) }

// A proxy is a program in front of a replica.
type proxy struct {
	name   string
	config func(address, upstream, dir string) string
	usual  string // its setting for the time-out if none is chosen
	args   []string
}

// The proxies that Debian has. Their configurations are those of docs/operations.md, with what a test needs.
var proxies = []proxy{
	{
		name:  "nginx",
		args:  []string{"-e", "stderr", "-c"},
		usual: "60s",
		config: func(address, upstream, dir string) string {
			return fmt.Sprintf(`
daemon off;
master_process off;
pid %[3]s/pid;
events {}
http {
  access_log off;
  client_body_temp_path %[3]s/1; proxy_temp_path %[3]s/2; fastcgi_temp_path %[3]s/3; uwsgi_temp_path %[3]s/4; scgi_temp_path %[3]s/5;
  server {
    listen %[1]s;
    location / {
      proxy_pass http://%[2]s;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_read_timeout %[4]s;
    }
  }
}
`, address, upstream, dir, "CUT")
		},
	},
	{
		name:  "haproxy",
		args:  []string{"-db", "-f"},
		usual: "50s",
		config: func(address, upstream, _ string) string {
			return fmt.Sprintf(`
defaults
  mode http
  timeout connect 5s
  timeout client 50s
  timeout server CUT
frontend paddock
  bind %s
  default_backend replicas
backend replicas
  server replica %s
`, address, upstream)
		},
	},
	{
		name:  "caddy",
		args:  []string{"run", "--adapter", "caddyfile", "--config"},
		usual: "0",
		config: func(address, upstream, _ string) string {
			return fmt.Sprintf(`
{
  admin off
  auto_https off
}
http://%s {
  reverse_proxy %s {
    transport http {
      response_header_timeout CUT
    }
  }
}
`, address, upstream)
		},
	},
}

// start runs the proxy in front of the service until the test ends, and returns its base URL.
func (p proxy) start(t *testing.T, service string) string {
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
	address, after := freeport.Address(port), p.usual
	if *cut > 0 {
		after = cut.String()
	}
	file := filepath.Join(dir, "config")
	text := strings.ReplaceAll(p.config(address, upstream.Host, dir), "CUT", after)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
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
			through := p.start(t, base)
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
