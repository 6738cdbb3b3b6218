package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// withLocalHostCheck refuses what a browser was led here to do under a foreign name (DNS
// rebinding): to it that name is the page's own site, so that the check for
// cross-origin requests sees nothing wrong.
func (s *Server) withLocalHostCheck(next http.Handler) http.Handler {
	if !s.localNames {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isLocalName(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		s.refuse(w, r, &lock.Error{Code: ErrCrossOrigin, Detail: fmt.Sprintf(
			"This service is open to its own machine only, and does not answer to the name %q. Use localhost or a number.", r.Host)})
	})
}

// isLocalName is whether the host, with or without a port, is localhost or an
// address as a number.
func isLocalName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
