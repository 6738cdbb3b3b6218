// Package pgbench measures the cost of PostgreSQL alone: single-row updates by primary key, each in its
// own transaction, driven by pgbench. A lock service that runs one statement per call cannot be much
// faster.
package pgbench
