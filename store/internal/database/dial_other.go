//go:build !linux

package database

import "syscall"

// limitUnacknowledged leaves TCP's own limit: there is no portable way to set one.
func limitUnacknowledged(_, _ string, _ syscall.RawConn) error { return nil }
