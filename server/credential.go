package server

import (
	"net/http"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// The names of the cookie that holds the API key of a page's reader. Browsers keep
// the first for this host alone and send it over TLS only; the second is for plain
// HTTP, which is for one's own machine.
const (
	secureCookie = "__Host-paddock"
	plainCookie  = "paddock"
)

// isSecure is whether the request came over TLS, to this Server or to a proxy that
// Options say is in front of it. Forwarding headers are not believed.
func (s *Server) isSecure(r *http.Request) bool { return r.TLS != nil || s.secureCookies }

func (s *Server) cookieName(r *http.Request) string {
	if s.isSecure(r) {
		return secureCookie
	}
	return plainCookie
}

// secretOf returns the API key that the request shows. A header goes before the
// cookie, and is not made up for by it.
func (s *Server) secretOf(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	switch {
	case len(headers) > 1:
		return "", badKey("There is more than one header Authorization. Send one, Authorization: Bearer KEY.")
	case len(headers) == 1:
		return bearerOf(headers[0])
	case !acceptsCookie(r):
		return "", lock.ErrKeyMissing
	}
	switch cookies := r.CookiesNamed(s.cookieName(r)); {
	case len(cookies) > 1:
		return "", badKey("The browser sends two keys in cookies of one name. Have it forget those of this site, and sign in anew.")
	case len(cookies) == 1 && cookies[0].Value != "":
		return cookies[0].Value, nil
	}
	return "", lock.ErrKeyMissing
}

// bearerOf returns the key in the value of a header Authorization. What it says
// otherwise is not repeated: it may be a secret, too.
func bearerOf(header string) (string, error) {
	scheme, rest, _ := strings.Cut(strings.Trim(header, " \t"), " ")
	secret := strings.TrimLeft(rest, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", badKey("The header Authorization does not begin with the word Bearer. Send Authorization: Bearer KEY.")
	case secret == "":
		return "", &lock.Error{Code: lock.ErrKeyMissing, Detail: "The header Authorization has no key after the word Bearer. Send Authorization: Bearer KEY."}
	case strings.ContainsFunc(secret, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", badKey("What follows the word Bearer is no API key: a key has no spaces and nothing beyond ASCII. Send it as it was given to you.")
	}
	return secret, nil
}

func badKey(detail string) error { return &lock.Error{Code: lock.ErrKeyInvalid, Detail: detail} }

// acceptsCookie is whether the cookie counts for the request: for the pages and for
// what they read. It never does for the calls of the API that change something;
// those of the page are under /ui/, and refused if another site sends them.
func acceptsCookie(r *http.Request) bool {
	path := routePath(r)
	switch {
	case strings.HasPrefix(path, "/ui/"):
		return true
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return false
	case strings.HasPrefix(path, "/docs/"):
		return true
	}
	switch path {
	case "/", "/ui", "/docs", "/openapi.yaml", "/openapi.json", "/version", "/v1/events", "/v1/events/stream":
		return true
	}
	return false
}

// routePath returns the path that chi routes by.
func routePath(r *http.Request) string {
	if r.URL.RawPath != "" {
		return r.URL.RawPath
	}
	return r.URL.Path
}
