package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// maxForm is the greatest size of a form, in bytes.
const maxForm = 16 << 10

// A revokePage asks before it revokes.
type revokePage struct {
	Title   string
	Dialog  bool // whether it is the list's dialog, which the script fills in
	Problem string
	Name    string
	Token   string        // as the request has it, a number or not
	Holding *lock.Holding // nil: the token holds the lock no more, or that is not known
	Back    filter
	Reason  string // as it was typed
	Form    bool   // whether there is something to revoke
}

// MaxReason returns the greatest length of a reason, in characters.
func (revokePage) MaxReason() int { return lock.MaxReasonLength }

// target reads which lease is meant.
func (p revokePage) target() (lock.Revoke, error) {
	token, err := parseToken(p.Token)
	return lock.Revoke{Name: p.Name, Token: token, Reason: strings.Join(strings.Fields(p.Reason), " ")}, err
}

func parseToken(s string) (lock.Token, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || lock.Token(n) > lock.MaxToken {
		return 0, lock.Invalid("token", "must be a whole number from 1 to %d", lock.MaxToken)
	}
	return lock.Token(n), nil
}

func revokePageFrom(v url.Values) revokePage {
	return revokePage{
		Title: "Revoke a lease", Name: v.Get("name"), Token: v.Get("token"),
		Back: filterBack(v.Get("back")), Reason: v.Get("reason"), Form: true,
	}
}

// confirm asks on a page of its own. It refuses to ask about a lease that is gone.
func (u *ui) confirm(w http.ResponseWriter, r *http.Request) {
	p := revokePageFrom(r.URL.Query())
	var err error
	if p.Holding, err = u.look(r, p); err != nil {
		u.ask(w, r, p, false, err)
		return
	}
	u.show(w, r, http.StatusOK, "revoke", p)
}

// look returns what the page says of the lease.
func (u *ui) look(r *http.Request, p revokePage) (*lock.Holding, error) {
	c, err := p.target()
	if err != nil {
		return nil, err
	}
	l, err := u.locks.Lock(r.Context(), c.Name)
	if err != nil {
		return nil, err
	}
	h := holding(l, c.Token)
	if h == nil {
		return nil, &lock.Error{Code: lock.ErrTokenMismatch, Token: c.Token, Newest: l.Token,
			Detail: "Token " + p.Token + " does not hold the lock " + l.Name + " any more. There is nothing to revoke."}
	}
	return h, nil
}

// ask shows the page again, saying what went wrong, with the form or without.
func (u *ui) ask(w http.ResponseWriter, r *http.Request, p revokePage, form bool, err error) {
	var status int
	status, p.Problem = u.problem(r, err)
	p.Form = form
	u.show(w, r, status, "revoke", p)
}

// revoke takes the lease away and leads back to the list. Sent again it does no
// harm, so after a lost answer the form may be sent once more.
func (u *ui) revoke(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.badForm(w, r, err)
		return
	}
	p := revokePageFrom(r.PostForm)
	c, err := p.target()
	if err == nil {
		_, err = u.locks.Revoke(r.Context(), c)
	}
	if err != nil {
		u.again(w, r, p, err)
		return
	}
	http.Redirect(w, r, notice{Name: c.Name, Token: c.Token}.done(p.Back), http.StatusSeeOther)
}

// again shows the form with the text kept. What is known of the lease may be
// missing: the refusal that the reader waits for is err.
func (u *ui) again(w http.ResponseWriter, r *http.Request, p revokePage, err error) {
	if h, lookErr := u.look(r, p); lookErr == nil {
		p.Holding = h
	}
	u.ask(w, r, p, true, err)
}

func (u *ui) badForm(w http.ResponseWriter, r *http.Request, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		u.refuse(w, r, http.StatusRequestEntityTooLarge, "The form is too large, so nothing was done.")
		return
	}
	u.refuse(w, r, http.StatusBadRequest, "The form could not be read, so nothing was done.")
}
