// Package soak lets a test of chance, such as a race or a random history, run briefly by default and for long on
// demand: with PADDOCK_SOAK=1 in the environment.
package soak

import "os"

// Rounds returns few, or many if PADDOCK_SOAK is 1.
func Rounds(few, many int) int {
	if os.Getenv("PADDOCK_SOAK") == "1" {
		return many
	}
	return few
}
