package web

import (
	"net/http"

	"github.com/paddock-lock/paddock/lock"
)

// A signInPage has the form for an API key. The server that mounts this package handles the POST.
type signInPage struct {
	frame
	Problem string // why the last attempt failed; empty: none
	Notice  string
	Back    string // the path to return to, unchecked: the page must not link to it
}

// signInProblems are the messages by the parameter why.
var signInProblems = map[string]string{
	string(lock.ErrKeyMissing):  "You are not signed in, so nothing was done.",
	string(lock.ErrKeyInvalid):  "Unknown API key: mistyped or revoked.",
	string(lock.ErrKeyExpired):  "That API key has expired. Sign in with another.",
	string(lock.ErrRateLimited): "Too many failed API key attempts from your address. Wait a minute, then try again.",
	string(lock.ErrInvalid):     "The form could not be read, so nothing was done. Try again.",
}

func (u *ui) signIn(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	p := signInPage{frame: frame{Title: "Sign in"}, Problem: signInProblems[v.Get("why")], Back: v.Get("back")}
	if v.Get("why") == "signed_out" {
		p.Notice = "You are signed out. The key stays valid until it is revoked."
	}
	u.show(w, r, http.StatusOK, "signin", p)
}
