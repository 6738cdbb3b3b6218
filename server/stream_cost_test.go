package server_test

import (
	"runtime"
	"testing"
	"testing/synctest"

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

// inUse returns the bytes in use on the heap and on stacks.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // the second one empties pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
