package pgserver

import (
	"context"
	"errors"
)

// Open returns an error: a server of its own needs the signals and file locks of Unix.
func Open(_ context.Context, opts Options) (Database, error) {
	return nil, errors.New("PostgreSQL cannot be started from here on Windows; " + opts.Otherwise)
}
