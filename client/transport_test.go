package client

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

// TestTheLongestWaitIsNotCutShort uses a server on an in-memory connection that answers after
// the longest wait and the time it may take beyond.
func TestTheLongestWaitIsNotCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr := transport(nil)
		defer tr.CloseIdleConnections()
		tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go answerLate(t, far)
			return near, nil
		}
		c, err := New(Options{BaseURL: "http://paddock.test", HTTP: &http.Client{Transport: tr}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		l, err := c.Watch(t.Context(), paddock.Watch{Name: "a", Seen: "1.1.free", Wait: lock.MaxWait})
		if err != nil || l.Revision != 2 {
			t.Errorf("after %v the lock is %+v, %v", time.Since(start), l, err)
		}
	})
}

func answerLate(t *testing.T, conn net.Conn) {
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
		t.Error(err)
	}
	<-time.After(lock.MaxWait + 20*time.Second)
	const body = `{"name":"a","state":"free","revision":2,"fencing_token":1,"as_of":"2026-01-02T03:04:07Z","waiters":0,"leases":[]}`
	_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nPaddock-Api: v1\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body))
	if err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// TestADeadConnectionIsReplaced black-holes the HTTP/2 connection that all calls share. A new
// connection would work.
func TestADeadConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	const free = `{"name":"a","state":"free","revision":2,"fencing_token":1,"as_of":"2026-01-02T03:04:07Z","waiters":0,"leases":[]}`
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the request came over %s", r.Proto)
		}
		w.Header().Set("Content-Type", contentJSON)
		w.Header().Set("Paddock-Api", "v1")
		if _, err := io.WriteString(w, free); err != nil {
			t.Error(err)
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	proxy := tcpproxy.New(t, s.Listener.Addr().String())
	tr := transport(nil)
	tr.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	defer tr.CloseIdleConnections()
	c, err := New(Options{BaseURL: "https://" + proxy.Address, HTTP: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	readLock := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Lock(ctx, "a")
		return err
	}
	if err := readLock(); err != nil {
		t.Fatal(err)
	}
	proxy.StallExisting()
	for tries := 1; readLock() != nil; tries++ {
		if tries > 30 {
			t.Fatalf("after %d attempts of one second the connection has not been replaced", tries)
		}
	}
}
