package guard

import (
	"context"
	"os"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// taskVariable is the environment variable with the task of this process, which paddock run sets.
const taskVariable = "PADDOCK_TASK"

// newTask returns the task of a new lease: a part of the context's or the process's task, or a new task. Each lease
// has its own, so that goroutines that work under one lease may wait for each other's locks.
func newTask(ctx context.Context) lock.TaskID {
	id := strings.ReplaceAll(uuid.NewString(), "-", "")
	outer := lock.TaskFrom(ctx)
	if outer == "" {
		outer = lock.TaskID(os.Getenv(taskVariable))
	}
	const part = 8
	if outer == "" || len(outer)+1+part > lock.MaxTaskIDLength {
		return lock.TaskID(id)
	}
	return outer + "." + lock.TaskID(id[:part])
}
