package placement

import (
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// retryAfter is the delay that callers are given who meet an ElsewhereError.
const retryAfter = time.Second

// An ElsewhereError is the answer to a call about a group that the database does not have. Nothing was done. To a
// caller that does not know of cells it is a *lock.Error with the code lock.ErrUnavailable.
type ElsewhereError struct {
	Group   string
	Cell    string // that has it, or that it moves to; empty if no cell takes groups
	Leaving bool   // it is moving
}

// Error describes where the group is.
func (e *ElsewhereError) Error() string { return e.refusal().Error() }

// Unwrap returns the *lock.Error.
func (e *ElsewhereError) Unwrap() error { return e.refusal() }

func (e *ElsewhereError) refusal() *lock.Error {
	detail := fmt.Sprintf("The locks of the group %s are in the cell %s. Nothing was changed; retry.", e.Group, e.Cell)
	switch {
	case e.Leaving:
		detail = fmt.Sprintf("The locks of the group %s are moving to the cell %s. Nothing was changed; retry.", e.Group, e.Cell)
	case e.Cell == "":
		detail = fmt.Sprintf("No cell takes the locks of the group %s: paddock cell fill makes one take them. Nothing was changed; retry.", e.Group)
	}
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Detail: detail}
}
