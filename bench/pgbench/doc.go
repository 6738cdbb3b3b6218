// Package pgbench is what PostgreSQL costs by itself: one row found by its key and updated in a
// transaction of its own, driven by PostgreSQL's own pgbench. A lock in PostgreSQL that is taken
// by a statement a call cannot be much faster.
package pgbench
