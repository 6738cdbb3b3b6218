//go:build !unix

package main

import "math"

// openFileLimit returns the greatest number: this system has no such limit for a process.
func openFileLimit() uint64 { return math.MaxUint64 }
