package lock

import (
	"strings"
)

// MaxTaskIDLength is the maximum length of a TaskID in bytes, as a client gives it.
const MaxTaskIDLength = 256

// A TaskID names a thread of work, so that the service can find deadlocks: which lease ends only after which wait. It
// is no secret and gives no right. It is one or more segments of the characters A-Z a-z 0-9 _ - with dots between
// them.
//
// A task is part of another one if its ID begins with that one's and a dot. A lease of the task "t" is expected to end
// only after the waits of "t" and of its parts, like "t.1", have ended. So a client that acquires a lock gives the
// work under it a part of its own: two threads that work under one lease are parts of its task, but not of each other,
// and one of them may wait for a lock that the other one holds.
type TaskID string

// Includes reports whether the task other is t or a part of it.
func (t TaskID) Includes(other TaskID) bool {
	return t != "" && strings.HasPrefix(string(other), string(t)) && (len(other) == len(t) || other[len(t)] == '.')
}

// Task returns the task of the acquires in the session that have no Task: one thread of work.
func (r SessionRef) Task() TaskID { return TaskID("session-" + r.String()) }

func checkTaskID(t TaskID) error {
	if len(t) > MaxTaskIDLength {
		return Invalid("task_id", "has %d bytes; at most %d are allowed", len(t), MaxTaskIDLength)
	}
	for i := range len(t) {
		c := t[i]
		if c == '.' && (i == 0 || i == len(t)-1 || t[i-1] == '.') {
			return Invalid("task_id", "has an empty segment at byte %d; put characters before and after each dot", i)
		}
		if c != '.' && !isAlphanumeric(c) && c != '_' && c != '-' {
			return Invalid("task_id", "has an invalid character at byte %d; use A-Z a-z 0-9 _ - and dots between segments", i)
		}
	}
	return nil
}
