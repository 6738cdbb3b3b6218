package server

import (
	"net/http"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/internal/wire/request"
)

// acquireSet acquires several locks together, or waits for them.
func (s *Server) acquireSet(w http.ResponseWriter, r *http.Request) {
	s.acquire(w, r, request.Read[request.AcquireSet], setReply)
}

// renewSet extends the leases of a set.
func (s *Server) renewSet(w http.ResponseWriter, r *http.Request) {
	execute(s, w, r, request.Read[request.RenewSet], s.locks.Renew, wire.LeaseSetOf)
}

// releaseSet ends the leases of a set.
func (s *Server) releaseSet(w http.ResponseWriter, r *http.Request) {
	s.release(w, r, request.Read[request.ReleaseSet])
}
