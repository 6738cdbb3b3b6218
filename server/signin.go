package server

import (
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// Where the page's reader signs in and out. The form itself is the page's.
const (
	signInPath  = "/ui/login"
	signOutPath = "/ui/logout"
)

const (
	maxSignIn = 8 * time.Hour // for which the browser is told to keep the key
	maxSignInSize = 8 << 10       // of the form, in bytes
	maxReturnPath   = 2 << 10       // of the address to go back to, in bytes
)

// signedOut is what the sign-in page is told after a sign-out, where otherwise it is
// told a Code.
const signedOut = "signed_out"

// signIn reads the form with the key. A good one goes into the cookie, and its reader
// on to the page that was asked for; any other leads back to the form, which says
// why. No replica keeps anything: the cookie is the key.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSignInSize)
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
	s.log.LogAttrs(r.Context(), slog.LevelInfo, "signed in", slog.String("request_id", requestID(r)), slog.String("key", key.ID))
	http.SetCookie(w, s.cookie(r, secret, cookieMaxAge(key)))
	redirectSeeOther(w, localPath(r.PostForm.Get("back")))
}

// signOut has the browser forget the key, which stays good.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, s.cookie(r, "", -1))
	redirectSeeOther(w, signInPath+"?"+url.Values{"why": {signedOut}}.Encode())
}

// cookie returns the cookie with that value, for that many seconds.
func (s *Server) cookie(r *http.Request, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(r), Value: value, Path: "/", MaxAge: seconds,
		Secure: s.isSecure(r), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}

// cookieMaxAge returns for how many seconds the browser is to keep the key.
func cookieMaxAge(key access.Key) int {
	life := maxSignIn
	if !key.ExpiresAt.IsZero() {
		life = min(life, time.Until(key.ExpiresAt))
	}
	return max(int(life/time.Second), 1)
}

// redirectToSignIn sends the reader of a page to the form, which knows why, and where to
// go on to.
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

// localPath returns the page of this service that the address is of, the first page if
// it is of none: nobody is led anywhere else.
func localPath(address string) string {
	const home = "/ui/"
	u, err := url.Parse(address)
	if err != nil || len(address) > maxReturnPath || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" {
		return home
	}
	at := u.EscapedPath()
	clean := path.Clean(at)
	plain := path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/") // also once it is decoded, as browsers do with %2e
	inside := strings.HasPrefix(at, home) || strings.HasPrefix(at, "/docs/")
	if !inside || !plain || clean != strings.TrimSuffix(at, "/") || strings.Contains(address, `\`) || clean == signInPath || clean == signOutPath {
		return home
	}
	u.Fragment = ""
	return u.String()
}

func redirectSeeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}
