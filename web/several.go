package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/paddock-lock/paddock/lock"
)

// maxSelected bounds the leases of one form.
const maxSelected = 100

// A severalPage is the form to confirm the revocation of several leases, or says what has become of each.
type severalPage struct {
	frame
	Problem string
	Leases  []selectedLease
	Done    bool // the leases were revoked, or not
	Back    location
	reasonFields
}

// A selectedLease is a lease that the reader has selected.
type selectedLease struct {
	revokePage
	Value  string // as in the form
	Failed string // why it is not revoked; empty: it can be, or it is
}

// Left returns how many leases are revoked, or can be.
func (p severalPage) Left() (n int) {
	for _, l := range p.Leases {
		if l.Failed == "" {
			n++
		}
	}
	return n
}

// Heading returns the page's heading.
func (p severalPage) Heading() string {
	switch n := p.Left(); {
	case n == 0:
		return "Nothing was revoked"
	case p.Done:
		return fmt.Sprintf("Revoked %d of %s", n, countOf(len(p.Leases), "lease", "leases"))
	default:
		return fmt.Sprintf("Revoke %s?", countOf(n, "this lease", "leases"))
	}
}

// Focused reports whether the form has the focus when the page is opened.
func (p severalPage) Focused() bool { return p.Problem == "" }

// Subject returns what the form takes away from its holders.
func (severalPage) Subject() string { return "The locks" }

// revokeSeveral shows the form for the selected leases. Sent with a reason, it revokes each, and shows what has become
// of each. It is idempotent, so after a lost answer the form may be sent again.
func (u *ui) revokeSeveral(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.badForm(w, r, err)
		return
	}
	p := severalPage{
		frame: u.frameOf(r, "Revoke several leases"), Back: parseLocation(r.PostForm.Get("back")), reasonFields: reasonFieldsFrom(r.PostForm),
	}
	err := cmp.Or(p.Reader.mustRevoke(), p.read(r))
	if err == nil && r.PostForm.Has("reason") {
		err = p.check()
		p.Done = err == nil
	}
	status := http.StatusOK
	for i := range p.Leases {
		if one := u.findSelected(r, &p.Leases[i]); one != nil {
			status, p.Leases[i].Failed = u.problem(r, one)
		}
	}
	for i := range p.Leases {
		if l := &p.Leases[i]; p.Done && l.Failed == "" {
			if one := u.revokeSelected(r, l, p.reasonFields); one != nil {
				status, l.Failed = u.problem(r, one)
			}
		}
	}
	if p.Left() > 0 {
		status = http.StatusOK
	}
	if err != nil {
		status, p.Problem = u.problem(r, err)
	}
	u.show(w, r, status, "revocations", p)
}

// read sets the selected leases.
func (p *severalPage) read(r *http.Request) error {
	values := r.PostForm["lease"]
	switch {
	case len(values) == 0:
		return lock.Invalid("lease", "is missing; select at least one lease")
	case len(values) > maxSelected:
		return lock.Invalid("lease", "is given %d times; select at most %d leases", len(values), maxSelected)
	}
	for _, value := range values {
		v, err := url.ParseQuery(value)
		if err != nil {
			return lock.Invalid("lease", "is not a lease that the page has offered; select it again")
		}
		p.Leases = append(p.Leases, selectedLease{revokePage: revokePageFrom(v, p.frame), Value: value})
	}
	return nil
}

// findSelected sets the lease to revoke. A token that only opens a lock is none.
func (u *ui) findSelected(r *http.Request, l *selectedLease) error {
	err := u.find(r, &l.revokePage)
	if err == nil && len(l.Holdings) == 0 {
		err = &lock.Error{Code: lock.ErrTokenMismatch, Detail: l.goneMessage()}
	}
	return err
}

// check returns what is wrong with the fields that all leases have in common.
func (p *severalPage) check() error {
	one := lock.Revoke{Name: "any", Token: 1, Reason: p.oneLine(), SkipGrace: p.SkipGrace}
	_, err := one.Resolve()
	return err
}

// revokeSelected revokes the lease. One that has ended since is left alone.
func (u *ui) revokeSelected(r *http.Request, l *selectedLease, f reasonFields) error {
	l.reasonFields = f
	c, err := l.target()
	if err == nil {
		_, err = u.locks.Revoke(r.Context(), c)
	}
	if errors.Is(err, lock.ErrTokenMismatch) { // its detail is for the caller of the API
		err = &lock.Error{Code: lock.ErrTokenMismatch, Detail: l.goneMessage()}
	}
	return err
}
