package faults_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Figures are what a replica has, and others have for it.
type resources struct {
	resident, peak byteSize // of memory; the peak since forgetPeak
	files          int      // that are open, connections among them
	backends       int      // of PostgreSQL
	waiters        int      // rows of the queue
	replicas       int      // rows of those that are known to live
}

// A byteSize is an amount of memory.
type byteSize int64

const mebibyte byteSize = 1 << 20

func (b byteSize) String() string { return fmt.Sprintf("%.1f MiB", float64(b)/float64(mebibyte)) }

func (f resources) String() string {
	return fmt.Sprintf("%v of memory, %v at the peak, %d files, %d backends of PostgreSQL, %d waiters, %d replicas",
		f.resident, f.peak, f.files, f.backends, f.waiters, f.replicas)
}

// proc is where the kernel tells of the replica.
func (e *securedReplica) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(e.process.cmd.Process.Pid), name)
}

func (e *securedReplica) resources() resources {
	e.t.Helper()
	status, err := os.ReadFile(e.proc("status"))
	e.must(err)
	files, err := os.ReadDir(e.proc("fd"))
	e.must(err)
	f := resources{files: len(files)}
	for line := range bytes.Lines(status) {
		var kib byteSize
		if n, _ := fmt.Sscanf(string(line), "VmRSS: %d kB", &kib); n == 1 {
			f.resident = kib << 10
		}
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %d kB", &kib); n == 1 {
			f.peak = kib << 10
		}
	}
	f.backends = e.count("select count(*) from pg_catalog.pg_stat_activity where application_name = 'paddock'")
	f.waiters, f.replicas = e.count("select count(*) from paddock.waiters"), e.count("select count(*) from paddock.replicas")
	return f
}

// resetPeak has the peak of the memory be what it is now.
func (e *securedReplica) resetPeak() {
	e.t.Helper()
	e.must(os.WriteFile(e.proc("clear_refs"), []byte("5"), 0))
}

// awaitResources waits until the figures are so, for as long as the replica may take to get
// there. What is not so is said.
func (e *securedReplica) awaitResources(most time.Duration, so func(resources) error) resources {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), most)
	defer cancel()
	var f resources
	e.must(retry(ctx, func() error {
		f = e.resources()
		return so(f)
	}))
	return f
}

// awaitMemory has the replica come back to so much memory. What it does not use any more it finds
// when it needs more, or every two minutes: headers that are long, and thrown away, are a need.
func (e *securedReplica) awaitMemory(most byteSize) {
	e.t.Helper()
	c, err := e.httpConn()
	e.must(err)
	defer func() { _ = c.Close() }() // it is of no further use
	probe := "GET /livez HTTP/1.1\r\nHost: " + e.address + "\r\nX-Long: " + strings.Repeat("x", 12<<10) + "\r\n\r\n"
	e.awaitResources(2*stepTimeout, func(f resources) error {
		for range 100 {
			if _, err := c.roundTrip(probe); err != nil {
				return err
			}
		}
		if f.resident > most {
			return fmt.Errorf("the replica still has %v, want at most %v", f, most)
		}
		return nil
	})
}
