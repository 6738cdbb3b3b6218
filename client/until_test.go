package client_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

func TestUntilCountsFromSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := over(t, func(r *http.Request) (*http.Response, error) {
			<-time.After(7 * time.Second)
			res := reply(r, http.StatusCreated, "application/json", leaseJSON)
			done := make(chan time.Time)
			time.AfterFunc(5*time.Second, func() { close(done) })
			res.Body = slowBody{res.Body, done}
			return res, nil
		})
		sent := time.Now()
		got, err := acquire(c, t)
		if err != nil {
			t.Fatal(err)
		}
		if time.Since(sent) != 12*time.Second {
			t.Fatalf("the answer took %v", time.Since(sent))
		}
		if d := got.Until.Sub(sent); d != 29*time.Second {
			t.Errorf("Until is %v after sending, want the 29s of expires_in_ms", d)
		}
	})
}

func TestEachRenewalCountsFromItsOwnSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := over(t, saying(http.StatusOK, "application/json", leaseJSON))
		<-time.After(time.Hour)
		got, err := c.Renew(t.Context(), lock.Renew{Name: "jobs:nightly", LeaseID: leaseID})
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Until(got.Until); d != 29*time.Second {
			t.Errorf("%v are left, want 29s", d)
		}
	})
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
