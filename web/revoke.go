package web

import (
	"errors"
	"net/http"

	"github.com/paddock-lock/paddock/lock"
)

// maxForm is the greatest size of a form, in bytes.
const maxForm = 16 << 10

// confirm asks on a page of its own. It refuses to ask about a lease that is gone.
func (u *ui) confirm(w http.ResponseWriter, r *http.Request) {
	p := revokePageFrom(r.URL.Query(), readerOf(r))
	err := p.Reader.mustRevoke()
	if err != nil {
		u.showRevokeForm(w, r, p, false, err)
		return
	}
	if p.Holdings, err = u.targetLeases(r, p); err != nil {
		u.showRevokeForm(w, r, p, false, err)
		return
	}
	u.show(w, r, http.StatusOK, "revoke", p.pinned())
}

// targetLeases returns the leases that the page is about.
func (u *ui) targetLeases(r *http.Request, p revokePage) ([]lock.LeaseInfo, error) {
	c, err := p.target()
	if err != nil {
		return nil, err
	}
	l, err := u.locks.Lock(r.Context(), c.Name)
	if err != nil {
		return nil, err
	}
	if h := p.grantedAtSince(leasesWithToken(l, c.Token, c.Slot)); len(h) > 0 {
		return h, nil
	}
	return nil, &lock.Error{Code: lock.ErrTokenMismatch, Token: c.Token, Newest: l.Token, Detail: p.goneMessage()}
}

// showRevokeForm shows the page again, saying what went wrong, with the form or without.
func (u *ui) showRevokeForm(w http.ResponseWriter, r *http.Request, p revokePage, form bool, err error) {
	var status int
	status, p.Problem = u.problem(r, err)
	p.Form = form
	u.show(w, r, status, "revoke", p)
}

// revoke takes the leases away and leads back. Sent again it does no harm, so
// after a lost answer the form may be sent once more.
func (u *ui) revoke(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.badForm(w, r, err)
		return
	}
	p := revokePageFrom(r.PostForm, readerOf(r))
	if p.Since != "" {
		if _, err := u.targetLeases(r, p); errors.Is(err, lock.ErrTokenMismatch) {
			u.showRevokeForm(w, r, p, false, err)
			return
		}
	}
	c, err := p.target()
	if err == nil {
		_, err = u.locks.Revoke(r.Context(), c)
	}
	if err != nil {
		u.showFormAgain(w, r, p, err)
		return
	}
	http.Redirect(w, r, notice{Name: c.Name, Token: c.Token, Slot: c.Slot}.done(p.Back), http.StatusSeeOther)
}

// showFormAgain shows the form with the text kept, unless the reader may never revoke it. What is known of the leases may be
// missing: the refusal that the reader waits for is err.
func (u *ui) showFormAgain(w http.ResponseWriter, r *http.Request, p revokePage, err error) {
	if errors.Is(err, lock.ErrRoleMissing) || errors.Is(err, lock.ErrNameNotAllowed) {
		u.showRevokeForm(w, r, p, false, err)
		return
	}
	if h, lookErr := u.targetLeases(r, p); lookErr == nil {
		p.Holdings = h
	}
	u.showRevokeForm(w, r, p, true, err)
}

func (u *ui) badForm(w http.ResponseWriter, r *http.Request, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		u.refuse(w, r, http.StatusRequestEntityTooLarge, "The form is too large, so nothing was done.")
		return
	}
	u.refuse(w, r, http.StatusBadRequest, "The form could not be read, so nothing was done.")
}
