// Package deployment runs Paddock as operators do: processes of the built program, two replicas on one PostgreSQL. Its
// tests kill, stop and cut them off, send many waiters, and run paddock verify. It contains only tests. Package faults
// injects faults at random, and the tests of package store have the stories that need no processes.
package deployment
