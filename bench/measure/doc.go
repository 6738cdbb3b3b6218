// Package measure reads what a run cost: the CPU time of process trees from /proc, that of the
// bench itself, and what PostgreSQL wrote to its log.
package measure
