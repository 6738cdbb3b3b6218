//go:build !linux

package testmain

// useMemory does nothing: only Linux has a directory in memory for every user.
func useMemory() error { return nil }
