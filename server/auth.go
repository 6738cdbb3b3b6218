package server

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// withAuthentication requires a valid API key and stores it in the context for the Service. Without a Keyring it does
// nothing.
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
		q := requestContextOf(r)
		q.Context = access.WithKey(q.Context, key)
		next.ServeHTTP(w, r)
	})
}

// forAll returns the step that refuses keys without the role for all names, where keys are required.
func (s *Server) forAll(role access.Role) step {
	return func(_ http.ResponseWriter, r *http.Request) error {
		if s.keys == nil {
			return nil
		}
		return access.CheckAll(r.Context(), role)
	}
}

// isPublic reports whether the request needs no key: health checks, the sign-in page with its assets, and signing out.
// A user whose key is no longer valid can sign out.
func (s *Server) isPublic(r *http.Request) bool {
	at := routePath(r)
	switch at {
	case livePath, readyPath:
		return true
	case signInPath:
		return s.hasSignIn
	case signOutPath:
		return s.hasSignIn && r.Method == http.MethodPost
	}
	rest, isAsset := strings.CutPrefix(at, "/ui/assets/")
	isClean := path.Clean(at) == at && !strings.ContainsAny(rest, `%\`)
	return s.hasSignIn && isAsset && isClean && strings.Count(rest, "/") == 1
}

// routePath returns the path that chi routes by.
func routePath(r *http.Request) string {
	if r.URL.RawPath != "" {
		return r.URL.RawPath
	}
	return r.URL.Path
}

// findKey returns the key that the request's secret belongs to.
func (s *Server) findKey(r *http.Request) (access.Key, error) {
	secret, err := s.secretOf(r)
	if err != nil {
		return access.Key{}, err
	}
	return s.keys.Find(secret)
}

// secretOf returns the secret in the Authorization header or the cookie. An invalid header is an error even if there
// is a cookie.
func (s *Server) secretOf(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	switch {
	case len(headers) > 1:
		return "", badKey("There is more than one Authorization header. Send one: Authorization: Bearer KEY.")
	case len(headers) == 1:
		return bearerOf(headers[0])
	case !acceptsCookie(r):
		return "", lock.ErrKeyMissing
	}
	switch cookies := r.CookiesNamed(s.cookieName(r)); {
	case len(cookies) > 1:
		return "", badKey("The browser sends two keys in cookies of the same name. " +
			"Delete the cookies of this site and sign in again.")
	case len(cookies) == 1 && cookies[0].Value != "":
		return cookies[0].Value, nil
	}
	return "", lock.ErrKeyMissing
}

// bearerOf returns the secret in an Authorization header. Errors do not repeat the header, because it may be a secret.
func bearerOf(header string) (string, error) {
	scheme, rest, _ := strings.Cut(strings.Trim(header, " \t"), " ")
	secret := strings.TrimLeft(rest, " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", badKey("The Authorization header does not start with Bearer. Send Authorization: Bearer KEY.")
	case secret == "":
		return "", &lock.Error{Code: lock.ErrKeyMissing,
			Detail: "The Authorization header has no key after Bearer. Send Authorization: Bearer KEY."}
	case strings.ContainsFunc(secret, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", badKey("The text after Bearer is not an API key: a key has no spaces and only ASCII characters. " +
			"Send the key unchanged.")
	}
	return secret, nil
}

func badKey(detail string) error { return &lock.Error{Code: lock.ErrKeyInvalid, Detail: detail} }

// acceptsCookie reports whether the cookie may authenticate the request: any request under /ui/, and the reads that
// the pages make elsewhere. API calls that change state need the header. crossOriginCheck protects writes under
// /ui/.
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

// countFailure counts a failed authentication from the client's address. It returns err, or ErrRateLimited after too
// many failures. A valid key is never rate-limited here, so clients behind the same proxy do not lock each other out.
func (s *Server) countFailure(r *http.Request, err error) error {
	code := refusalOf(err).Code
	if code != lock.ErrKeyInvalid && code != lock.ErrKeyExpired {
		return err
	}
	client := clientAddress(r)
	if limited := s.attempts.CountFailure(client); limited != nil {
		return limited
	}
	from := "unix"
	if client.IsValid() {
		from = client.String()
	}
	s.log.LogAttrs(r.Context(), slog.LevelWarn, "invalid API key",
		slog.String("request_id", requestID(r)), slog.String("code", string(code)), slog.String("client", from))
	return err
}

// clientAddress returns the address of the connection's other end, which may be a proxy. It is not valid if the
// connection came through a Unix socket: such clients have no address, and count as one.
func clientAddress(r *http.Request) netip.Addr {
	client, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return client.Addr()
}

// rejectUnauthenticated redirects page requests to the sign-in page and refuses all other requests. A browser omits
// the SameSite=Strict cookie when the user follows a link from another site. Such a request is answered with a page
// that reloads itself: the browser sends the cookie with the reload.
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

// clearBadCookie deletes the rejected cookie, which would otherwise count as a failure with every request. Call it
// only if the answer tells the user why.
func (s *Server) clearBadCookie(w http.ResponseWriter, r *http.Request) {
	if len(r.CookiesNamed(s.cookieName(r))) > 0 && len(r.Header.Values("Authorization")) == 0 {
		http.SetCookie(w, s.cookie(r, "", -1))
	}
}

// isPage reports whether the path belongs to a page, not to the API.
func isPage(r *http.Request) bool {
	at := routePath(r)
	return at == "/" || at == "/ui" || at == "/docs" || strings.HasPrefix(at, "/ui/") || strings.HasPrefix(at, "/docs/")
}

// The paths to sign in and out. Options.UI serves the form.
const (
	signInPath  = "/ui/login"
	signOutPath = "/ui/logout"
)

const (
	maxCookieAge  = 8 * time.Hour // the cookie's greatest age
	maxFormSize   = 8 << 10       // of the form, in bytes
	maxReturnPath = 2 << 10       // of the path to return to, in bytes
)

// signedOut is the value of the sign-in page's parameter why after signing out. Otherwise why is a lock.Code.
const signedOut = "signed_out"

// signIn reads the form. With a valid key it sets the cookie and redirects to the requested page. Otherwise it
// redirects to the form, with the reason. The cookie holds the secret itself, so replicas share no session state.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFormSize)
	if err := r.ParseForm(); err != nil {
		s.redirectToSignIn(w, r, lock.ErrInvalid)
		return
	}
	secret := strings.TrimSpace(r.PostForm.Get("key"))
	key, err := access.Key{}, error(lock.ErrKeyMissing)
	if secret != "" {
		key, err = s.keys.Find(secret)
	}
	if err != nil {
		s.redirectToSignIn(w, r, refusalOf(s.countFailure(r, err)).Code)
		return
	}
	recordKey(w, key)
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "signed in",
		slog.String("request_id", requestID(r)), slog.String("key", key.ID))
	http.SetCookie(w, s.cookie(r, secret, cookieMaxAge(key)))
	redirectSeeOther(w, localPath(r.PostForm.Get("back")))
}

// signOut deletes the cookie. The key stays valid.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, s.cookie(r, "", -1))
	redirectSeeOther(w, signInPath+"?"+url.Values{"why": {signedOut}}.Encode())
}

// The names of the cookie with the user's secret. Browsers accept a __Host- cookie only over TLS and only for this
// host. plainCookie is for plain HTTP on the user's own machine.
const (
	secureCookie = "__Host-paddock"
	plainCookie  = "paddock"
)

// isSecure reports whether the request arrived over TLS, here or, by Options.SecureCookies, at a proxy. Forwarding
// headers are ignored.
func (s *Server) isSecure(r *http.Request) bool { return r.TLS != nil || s.secureCookies }

func (s *Server) cookieName(r *http.Request) string {
	if s.isSecure(r) {
		return secureCookie
	}
	return plainCookie
}

// cookie returns the cookie with this value and maximum age, in seconds.
func (s *Server) cookie(r *http.Request, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(r), Value: value, Path: "/", MaxAge: seconds,
		Secure: s.isSecure(r), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// cookieMaxAge returns the maximum age of the key's cookie, in seconds.
func cookieMaxAge(key access.Key) int {
	life := maxCookieAge
	if !key.ExpiresAt.IsZero() {
		life = min(life, time.Until(key.ExpiresAt))
	}
	return max(int(life/time.Second), 1)
}

// redirectToSignIn redirects to the form, with the reason and the path to return to after signing in.
func (s *Server) redirectToSignIn(w http.ResponseWriter, r *http.Request, why lock.Code) {
	v := url.Values{}
	if why != lock.ErrKeyMissing || r.Method == http.MethodPost {
		v.Set("why", string(why))
	}
	back := r.URL.RequestURI()
	if r.Method == http.MethodPost {
		back = r.PostForm.Get("back")
	}
	if back = localPath(back); back != localPath("") {
		v.Set("back", back)
	}
	to := signInPath
	if len(v) > 0 {
		to += "?" + v.Encode()
	}
	redirectSeeOther(w, to)
}

// localPath returns the address if it is a page of this service, and /ui/ otherwise. This prevents open redirects.
func localPath(address string) string {
	const home = "/ui/"
	u, err := url.Parse(address)
	if err != nil || len(address) > maxReturnPath || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" {
		return home
	}
	at := u.EscapedPath()
	clean := path.Clean(at)
	plain := path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/") // also decoded, as browsers do with %2e
	inside := strings.HasPrefix(at, home) || strings.HasPrefix(at, "/docs/")
	if !inside || !plain || clean != strings.TrimSuffix(at, "/") || strings.Contains(address, `\`) ||
		clean == signInPath || clean == signOutPath {
		return home
	}
	u.Fragment = ""
	return u.String()
}

func redirectSeeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
