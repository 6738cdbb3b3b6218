package server

import (
	"net/http"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/internal/wire/request"
)

// AcquireSet acquires several locks together, or waits for them.
func (a *api) AcquireSet(w http.ResponseWriter, r *http.Request) {
	a.acquire(w, r, "", (*request.Decoder).AcquireSet, setReply)
}

// RenewSet extends the leases of a set.
func (a *api) RenewSet(w http.ResponseWriter, r *http.Request) {
	execute(a, w, r, "", (*request.Decoder).RenewSet, a.locks.Renew, wire.LeaseSetOf)
}

// ReleaseSet ends the leases of a set.
func (a *api) ReleaseSet(w http.ResponseWriter, r *http.Request) {
	a.release(w, r, "", (*request.Decoder).ReleaseSet)
}
