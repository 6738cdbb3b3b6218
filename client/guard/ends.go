package guard

import (
	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// An endWatcher is a paddock.Service that tells when leases or a session may have ended, as a client.Client does. See
// WatchEnds of client.Client.
type endWatcher interface {
	WatchEnds(leases []lock.Lease, session lock.SessionRef, hint func()) (leave func())
}

// watchEnd returns a function that begins to watch the leases of a grant or the session, nil if the service does not
// tell.
func watchEnd(locks paddock.Service, leases []lock.Lease, session lock.SessionRef) func(hint func()) (leave func()) {
	w, tells := locks.(endWatcher)
	if !tells {
		return nil
	}
	return func(hint func()) func() { return w.WatchEnds(leases, session, hint) }
}
