package server

import (
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"strings"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// isPublic is whether the request may be made without a key: to see whether the
// replica lives, to sign in, and to have the browser forget a key, also one that is
// good no longer.
func (s *Server) isPublic(r *http.Request) bool {
	at := routePath(r)
	switch at {
	case "/livez", "/readyz":
		return true
	case signInPath:
		return s.hasSignIn
	case signOutPath:
		return s.hasSignIn && r.Method == http.MethodPost
	}
	rest, asset := strings.CutPrefix(at, "/ui/assets/")
	return s.hasSignIn && asset && path.Clean(at) == at && strings.Count(rest, "/") == 1 && !strings.ContainsAny(rest, `%\`)
}

// withAuthentication lets through whoever shows a good key, and puts the key into the
// context, where the Service finds it. Without a Keyring it lets everybody through.
func (s *Server) withAuthentication(next http.Handler) http.Handler {
	if s.keys == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.isPublic(r) {
			next.ServeHTTP(w, r)
			return
		}
		key, err := s.findKey(r)
		if err != nil {
			s.rejectUnauthenticated(w, r, s.countFailure(r, err))
			return
		}
		recordKey(w, key)
		q := requestOf(r)
		q.Context = access.WithKey(q.Context, key)
		next.ServeHTTP(w, r)
	})
}

// findKey returns the key whose secret the request shows.
func (s *Server) findKey(r *http.Request) (access.Key, error) {
	secret, err := s.secretOf(r)
	if err != nil {
		return access.Key{}, err
	}
	return s.keys.Find(secret)
}

// rejectUnauthenticated sends who looks for a page to where to sign in, and refuses all others.
// Browsers keep the cookie back where a link of another site leads here, also through a
// redirect: they are told to ask anew, which counts as coming from here.
func (s *Server) rejectUnauthenticated(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case !s.hasSignIn || !isPage(r) || !strings.Contains(r.Header.Get("Accept"), "text/html"):
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Method == http.MethodGet:
		w.Header().Set("Refresh", "0; url="+localPath(r.URL.RequestURI()))
	default:
		s.clearBadCookie(w, r)
		s.redirectToSignIn(w, r, refusalOf(err).Code)
		return
	}
	s.refuse(w, r, err)
}

// clearBadCookie has the browser clearBadCookie the cookie, if it sent one, with which it was turned away:
// it would count as one more failure whatever is asked for. That is done where the reader is
// told why, and not before.
func (s *Server) clearBadCookie(w http.ResponseWriter, r *http.Request) {
	if len(r.CookiesNamed(s.cookieName(r))) > 0 && len(r.Header.Values("Authorization")) == 0 {
		http.SetCookie(w, s.cookie(r, "", -1))
	}
}

// isPage is whether there is something for people at the address.
func isPage(r *http.Request) bool {
	at := routePath(r)
	return at == "/" || at == "/ui" || at == "/docs" || strings.HasPrefix(at, "/ui/") || strings.HasPrefix(at, "/docs/")
}

// challenge is what WWW-Authenticate says with a 401 of that code.
func challenge(code lock.Code) string {
	if code == lock.ErrKeyMissing {
		return `Bearer realm="paddock"`
	}
	return `Bearer realm="paddock", error="invalid_token"`
}

// countFailure returns err, which came of looking for a key, or that too many such came from
// the same address. A key that is good is let through all the same, so that nobody
// behind one proxy is locked out by another.
func (s *Server) countFailure(r *http.Request, err error) error {
	code := refusalOf(err).Code
	if code != lock.ErrKeyInvalid && code != lock.ErrKeyExpired {
		return err
	}
	from := clientAddress(r)
	if limited := s.attempts.Failed(from); limited != nil {
		return limited
	}
	s.log.LogAttrs(r.Context(), slog.LevelWarn, "a bad API key was shown",
		slog.String("request_id", requestID(r)), slog.String("code", string(code)), slog.String("client", from.String()))
	return err
}

// clientAddress returns whom the connection is with: a proxy, if there is one.
func clientAddress(r *http.Request) netip.Addr {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr()
}
