package client_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// A slowBody pauses before the first byte.
type slowBody struct {
	io.Reader
	pause <-chan time.Time
}

func (b slowBody) Read(p []byte) (int, error) {
	if b.pause != nil {
		<-b.pause
	}
	return b.Reader.Read(p)
}

func (b slowBody) Close() error { return nil }

// TestUntilCountsFromSending: not from the answer, and for each call from its own request.
func TestUntilCountsFromSending(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		until  func(*testing.T, *client.Client) (time.Time, error)
	}{
		"an acquire": {leaseJSON, func(t *testing.T, c *client.Client) (time.Time, error) {
			g, err := acquire(c, t)
			return g.Until, err
		}},
		"a renewal": {leaseJSON, func(t *testing.T, c *client.Client) (time.Time, error) {
			g, err := c.Renew(t.Context(), lock.Renew{Locks: []string{"jobs:nightly"}, LeaseID: leaseID})
			return g.Until, err
		}},
		"a renewal of a set": {setJSON, func(t *testing.T, c *client.Client) (time.Time, error) {
			g, err := c.Renew(t.Context(), lock.Renew{Locks: setNames, LeaseID: leaseID})
			return g.Until, err
		}},
		"a renewal of a session": {sessionJSON, func(t *testing.T, c *client.Client) (time.Time, error) {
			g, err := c.RenewSession(t.Context(), lock.RenewSession{ID: sessionID})
			return g.Until, err
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			asking := over(t, func(r *http.Request) (*http.Response, error) {
				<-time.After(7 * time.Second)
				res := reply(r, http.StatusOK, "application/json", c.answer)
				done := make(chan time.Time)
				time.AfterFunc(5*time.Second, func() { close(done) })
				res.Body = slowBody{res.Body, done}
				return res, nil
			})
			for range 2 {
				sent := time.Now()
				until, err := c.until(t, asking)
				if took := time.Since(sent); err != nil || took != 12*time.Second || until.Sub(sent) != 29*time.Second {
					t.Errorf("%s is answered after %v with %v, %v after sending, want the 29s of expires_in_ms",
						name, took, err, until.Sub(sent))
				}
			}
		})
	}
}

func TestDurationsOutOfRangeAreClamped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"-5000":               0,
		"9223372036854775807": (1<<63 - 1) / time.Millisecond * time.Millisecond,
	} {
		body := strings.Replace(leaseJSON, `"ttl_ms":30000`, `"ttl_ms":`+in, 1)
		got, err := acquire(over(t, saying(http.StatusCreated, "application/json", body)), t)
		if err != nil {
			t.Fatal(err)
		}
		if got.TTL != want {
			t.Errorf("a ttl_ms of %s became %v, want %v", in, got.TTL, want)
		}
	}
}
