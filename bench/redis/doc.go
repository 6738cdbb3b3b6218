// Package redis measures the lock that Redis's documentation describes: a key that is set if
// there is none, with a time to live, and that is deleted by a script which compares its value.
// A counter for each lock, raised in the same script, gives the token that the recipe lacks.
//
// One server, with an append-only file that is synced before each answer, or each second. It is
// not rewritten meanwhile, in Redis's favour. Scripts go by their hashes. Without a front each
// client has a connection of its own, as a process of its own would have; waiting is polling,
// since Redis keeps no queue.
package redis
