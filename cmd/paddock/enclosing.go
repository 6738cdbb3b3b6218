package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/paddock-lock/paddock/lock"
)

// An enclosing lease is the one under which this process runs, as the environment of a command
// that paddock run started says. The zero value is none.
type enclosing struct {
	lock  string
	token string // empty if the environment names none
}

// enclosingLease returns the enclosing lease, or none if it is a lease of another service than
// the one at url.
func enclosingLease(env lookup, url string) enclosing {
	name, _ := env("PADDOCK_LOCK")
	if at, ok := env("PADDOCK_URL"); ok && at != url {
		return enclosing{}
	}
	token, _ := env("PADDOCK_FENCING_TOKEN")
	if _, err := strconv.ParseInt(token, 10, 64); err != nil {
		token = ""
	}
	return enclosing{lock: name, token: token}
}

// refused returns what refused does. If the lock of that name is held, and this process already
// runs under a lease of it, the error says so: to wait for the lock would be to wait for ourselves.
func (e enclosing) refused(name string, err error) error {
	var held *lock.Error
	if name != e.lock || !errors.As(err, &held) || held.Code != lock.ErrHeld {
		return refused(err)
	}
	known := "from PADDOCK_LOCK"
	if e.token != "" {
		known = "token " + e.token + ", " + known
	}
	return &failure{exitNotAcquired, fmt.Errorf("%s This process already runs under a lease of %s (%s); locks are not re-entrant. "+
		"Leave the inner paddock out, or use another lock", heldBy(held), name, known)}
}
