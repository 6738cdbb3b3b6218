// Package soak has a system work for a long time, and tells whether its memory, its tables, its
// rate and its latency stay as they are.
package soak
