// Package measure reads the costs of a run: the CPU time of process trees from /proc, that of the bench
// itself, and the WAL written by PostgreSQL.
package measure
