// Package systemtest holds what every system.System must pass before it is measured.
package systemtest
