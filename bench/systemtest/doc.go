// Package systemtest contains the tests that every system.System must pass.
package systemtest
