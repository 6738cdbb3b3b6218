package server_test

import (
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/server"
)

// TestStreamMemoryIsBoundedAndFreed opens a thousand streams. It counts the memory of server and client.
func TestStreamMemoryIsBoundedAndFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams, most = 1000, 100 << 20
		h := new(fakeEvents)
		s, _, end := servePiped(t, server.Options{Locks: &fake{events: h.events}})
		before := inUse()
		all := make([]stream, streams)
		for i := range all {
			all[i] = s.stream("/v1/events/stream", "")
			all[i].want(synced("0"))
		}
		h.add(1)
		for _, one := range all {
			one.want(news(1))
		}
		synctest.Wait()
		cost := inUse() - before
		for _, one := range all {
			one.close()
		}
		clear(all)
		synctest.Wait()
		left := inUse() - before
		t.Logf("%d streams take %d KiB each, and leave %d KiB", streams, cost/streams>>10, left>>10)
		if cost > most || left > most/10 {
			t.Errorf("%d streams take %d bytes and leave %d", streams, cost, left)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestUnreadStreamMemoryIsBounded sends a full page to clients that do not read it, until the server disconnects them.
// It counts the memory of server and client.
func TestUnreadStreamMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams, most = 500, 72 << 10 // bytes for each; with a copy of the page it would be 120 KiB
		h := new(fakeEvents)
		_, p, end := servePiped(t, server.Options{Locks: &fake{events: h.events}})
		h.add(server.StreamPage)
		before := inUse()
		conns := make([]net.Conn, streams)
		for i := range conns {
			c, err := p.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(c, "GET /v1/events/stream?cursor=0 HTTP/1.1\r\nHost: p\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			conns[i] = c
		}
		synctest.Wait() // each stream has an unread page
		cost := inUse() - before
		<-time.After(server.WriteTimeout)
		synctest.Wait()
		for _, c := range conns {
			if _, err := io.Copy(io.Discard, c); err != nil { // returns, because the server has closed it
				t.Error(err)
			}
			_ = c.Close() // already closed by the server
		}
		clear(conns)
		left := inUse() - before
		t.Logf("%d streams take %d KiB each, and leave %d KiB", streams, cost/streams>>10, left>>10)
		if cost > streams*most || left > 2<<20 {
			t.Errorf("%d streams take %d bytes and leave %d", streams, cost, left)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// inUse returns the bytes in use on the heap and on stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // the second one empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
