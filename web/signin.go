package web

import (
	"net/http"

	"github.com/paddock-lock/paddock/lock"
)

// A signInPage asks for an API key. Whoever mounts the page reads the form.
type signInPage struct {
	Title   string
	Reader  reader
	Problem string // why the reader is asked, or asked again; empty: at the beginning
	Notice  string
	Back    string // where to go on to, as an earlier page or anybody else put it: not to be led to from here
}

// signInProblems are why a reader is asked to sign in, by what the address says.
var signInProblems = map[string]string{
	string(lock.ErrKeyMissing):  "You are not signed in, so nothing was done.",
	string(lock.ErrKeyInvalid):  "That is no API key that this service knows. It was mistyped, or revoked.",
	string(lock.ErrKeyExpired):  "That API key has expired. Sign in with another.",
	string(lock.ErrRateLimited): "Too many keys that are none came from your address. Wait a minute, then try again.",
	string(lock.ErrInvalid):     "The form could not be read, so nothing was done. Try again.",
}

func (u *ui) signIn(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	p := signInPage{Title: "Sign in", Problem: signInProblems[v.Get("why")], Back: v.Get("back")}
	if v.Get("why") == "signed_out" {
		p.Notice = "You are signed out. The key stays good until it is revoked."
	}
	u.show(w, r, http.StatusOK, "signin", p)
}
