package guard

import (
	"context"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// taskVariable is the environment variable with the task of this process, which paddock run and paddock session set.
const taskVariable = "PADDOCK_TASK"

// outerTask returns the task of the context or of the process, empty if there is none.
func outerTask(ctx context.Context) lock.TaskID {
	if outer := lock.TaskFrom(ctx); outer != "" {
		return outer
	}
	return lock.TaskID(os.Getenv(taskVariable))
}

// newTask returns the task of a new lease: a part of the context's or the process's task, or a new task. Each lease
// has its own, so that goroutines that work under one lease may wait for each other's locks.
func newTask(ctx context.Context) lock.TaskID {
	id := strings.ReplaceAll(uuid.NewString(), "-", "")
	outer := outerTask(ctx)
	const part = 8
	if outer == "" || len(outer)+1+part > lock.MaxTaskIDLength {
		return lock.TaskID(id)
	}
	return outer + "." + lock.TaskID(id[:part])
}

// unmanagedTask returns the task of a lease that the caller renews. No work runs as a part of it. In a session of
// another process, such as a script, it is the task around it, empty for that of the session: the script acquires one
// lock after the other. Without a task around it, nothing is known of the work.
func unmanagedTask(ctx context.Context, o Options) lock.TaskID {
	outer := outerTask(ctx)
	if o.Session == nil && (outer == "" || o.SessionID != lock.SessionID{}) {
		return outer
	}
	return newTask(ctx)
}
