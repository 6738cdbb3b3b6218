package client

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestTheLongestWaitIsNotCutShort has a server answer after the longest wait and
// what it may take beyond, over a connection in memory.
func TestTheLongestWaitIsNotCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		own := transport()
		defer own.CloseIdleConnections()
		own.DialContext = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go answerLate(t, far)
			return near, nil
		}
		c, err := New(Options{BaseURL: "http://paddock.test", HTTP: &http.Client{Transport: own}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		l, err := c.Watch(t.Context(), lock.Watch{Name: "a", Seen: "1.1.free", Wait: lock.LongestWait})
		if err != nil || l.Revision != 2 {
			t.Errorf("after %v the lock is %+v, %v", time.Since(start), l, err)
		}
	})
}

func answerLate(t *testing.T, conn net.Conn) {
	if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
		t.Error(err)
	}
	<-time.After(lock.LongestWait + 20*time.Second)
	const body = `{"name":"a","state":"free","revision":2,"fencing_token":1,"as_of":"2026-01-02T03:04:07Z","waiters":0,"leases":[]}`
	_, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body))
	if err != nil {
		t.Error(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
