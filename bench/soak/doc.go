// Package soak runs a system for a long time and reports whether its memory, its tables, its rate and
// its latency stay stable.
package soak
