// Package redis measures the lock from Redis's documentation: a key that is set with a TTL if it does
// not exist, and that is deleted by a script which compares its value. The recipe has no token, so the
// script also increments a counter for each lock.
//
// It runs one server with an append-only file that is synced before each answer, or once a second. The
// file is not rewritten during a run, which favors Redis. Scripts are sent as hashes. Without a front,
// each client has its own connection, as separate processes would have. Waiting is polling, because
// Redis has no queue.
package redis
