package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// maxForm is the greatest size of a form, in bytes.
const maxForm = 16 << 10

// confirm shows the form on its own page, unless the lease has ended.
func (u *ui) confirm(w http.ResponseWriter, r *http.Request) {
	p := revokePageFrom(r.URL.Query(), u.frameOf(r, "Revoke a lease"))
	err := p.Reader.mustRevoke()
	if err != nil {
		u.showRevokeForm(w, r, p, false, err)
		return
	}
	if err = u.find(r, &p); err != nil {
		u.showRevokeForm(w, r, p, false, err)
		return
	}
	u.show(w, r, http.StatusOK, "revoke", p.pinned())
}

// find sets the leases to revoke, or what closes the lock, if the token opens it.
func (u *ui) find(r *http.Request, p *revokePage) error {
	c, err := p.target()
	if err != nil {
		return err
	}
	l, err := u.locks.Lock(r.Context(), c.Name)
	if err != nil {
		return err
	}
	if h := p.grantedAtSince(leasesWithToken(l, c.Token, c.Slot)); len(h) > 0 {
		p.Holdings, p.Waiters = h, l.Waiters
		return nil
	}
	if l.Closed != nil && l.Token == c.Token {
		p.Closed = l.Closed
		return nil
	}
	return &lock.Error{Code: lock.ErrTokenMismatch, Token: c.Token, Newest: l.Token, Detail: p.goneMessage()}
}

// showRevokeForm shows the page with the error, with or without the form.
func (u *ui) showRevokeForm(w http.ResponseWriter, r *http.Request, p revokePage, form bool, err error) {
	var status int
	status, p.Problem = u.problem(r, err)
	p.Form = form
	u.show(w, r, status, "revoke", p)
}

// revoke revokes the leases and redirects back. It is idempotent, so after a lost answer the form may be sent again.
func (u *ui) revoke(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		u.badForm(w, r, err)
		return
	}
	p := revokePageFrom(r.PostForm, u.frameOf(r, "Revoke a lease"))
	if p.Since != "" {
		if err := u.find(r, &p); errors.Is(err, lock.ErrTokenMismatch) {
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
	if r.PostForm.Has("opens") { // the page shows it
		http.Redirect(w, r, p.Back.URL(), http.StatusSeeOther)
		return
	}
	http.Redirect(w, r, notice{Name: c.Name, Token: c.Token, Slot: c.Slot}.done(p.Back), http.StatusSeeOther)
}

// showFormAgain shows the form with its text and err. Without permission to revoke, it shows err only. The leases may
// be missing, because another error must not hide err.
func (u *ui) showFormAgain(w http.ResponseWriter, r *http.Request, p revokePage, err error) {
	if errors.Is(err, lock.ErrRoleMissing) || errors.Is(err, lock.ErrNameNotAllowed) {
		u.showRevokeForm(w, r, p, false, err)
		return
	}
	_ = u.find(r, &p) // what is not found is not shown
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

// reasonFields are the fields of every form that revokes.
type reasonFields struct {
	Reason    string // as typed
	SkipGrace bool
}

func reasonFieldsFrom(v url.Values) reasonFields {
	return reasonFields{Reason: v.Get("reason"), SkipGrace: v.Get("skip_grace") != ""}
}

// oneLine returns the reason without line breaks and superfluous spaces.
func (f reasonFields) oneLine() string { return strings.Join(strings.Fields(f.Reason), " ") }

// MaxReason returns the greatest length of a reason, in characters.
func (reasonFields) MaxReason() int { return lock.MaxReasonLength }

// A revokePage is the form to confirm a revocation.
type revokePage struct {
	frame
	Dialog  bool // it is the dialog on another page, which the script fills in
	Problem string

	// The leases to revoke, as in the request. An empty Slot means all leases with the token. Since is when the lease
	// in the slot was granted, or empty. It distinguishes shared leases, because the next one in the slot has the same
	// token.
	Name, Token, Slot, Since string

	Holdings []lock.LeaseInfo // empty: the token no longer holds the lock, or the leases are unknown
	Waiters  int              // of the lock, while there is a lease
	Closed   *lock.Closure    // there is no lease, and the token opens the lock; otherwise nil
	Back     location
	Form     bool // there is something to revoke
	reasonFields
}

func revokePageFrom(v url.Values, f frame) revokePage {
	return revokePage{
		frame: f,
		Name:  v.Get("name"), Token: v.Get("token"), Slot: v.Get("slot"), Since: v.Get("since"),
		Back: parseLocation(v.Get("back")), Form: true, reasonFields: reasonFieldsFrom(v),
	}
}

// pinned returns the page for the lease that is in the slot now, not for a later one.
func (p revokePage) pinned() revokePage {
	if p.Slot != "" && len(p.Holdings) == 1 && p.Holdings[0].Mode == lock.Shared {
		p.Since = p.Holdings[0].AcquiredAt.UTC().Format(time.RFC3339Nano)
	}
	return p
}

// Question returns the page's heading.
func (p revokePage) Question() string {
	switch {
	case !p.Form && !p.Dialog:
		return "Nothing was revoked"
	case p.Closed != nil:
		return "Open this lock?"
	case len(p.Holdings) > 1:
		return fmt.Sprintf("Revoke all %d leases?", len(p.Holdings))
	case p.SetEnd() != nil:
		return fmt.Sprintf("Revoke the leases of all %d locks?", p.SetEnd().Size)
	}
	return "Revoke this lease?"
}

// Holders returns the leases whose holders the page names.
func (p revokePage) Holders() []lock.LeaseInfo {
	return p.Holdings[:min(len(p.Holdings), maxShown)]
}

// More returns the number of other holders.
func (p revokePage) More() int { return len(p.Holdings) - len(p.Holders()) }

// Focused reports whether the form has the focus when the page is opened.
func (p revokePage) Focused() bool { return p.Problem == "" && !p.Dialog }

// SetEnd returns what the revocation ends besides the leases, or nil if none is of a set.
func (p revokePage) SetEnd() *setEnd { return setEndOf(p.Name, p.Holdings) }

// Grace returns the grace of the leases in words. It is only called if there are some.
func (p revokePage) Grace() string { return graceOf(p.Holdings...) }

// Subject returns what the form takes away from its holder.
func (p revokePage) Subject() string {
	if p.SetEnd() != nil {
		return "The locks"
	}
	return "The lock"
}

// target returns the revocation that the form describes.
func (p revokePage) target() (lock.Revoke, error) {
	token, tokenErr := parseToken(p.Token)
	slot, slotErr := parseSlot(p.Slot)
	since, sinceErr := p.since()
	c := lock.Revoke{
		Name: p.Name, Token: token, Slot: slot, AcquiredAt: since,
		Reason: p.oneLine(), SkipGrace: p.SkipGrace,
	}
	return c, cmp.Or(tokenErr, slotErr, sinceErr)
}

// since returns Since as a time, or zero.
func (p revokePage) since() (time.Time, error) {
	if p.Since == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, p.Since)
	if err != nil {
		return t, lock.Invalid("since", "must be a time such as 2006-01-02T15:04:05Z")
	}
	return t, nil
}

// grantedAtSince returns the leases granted at Since, or all if Since is empty.
func (p revokePage) grantedAtSince(h []lock.LeaseInfo) []lock.LeaseInfo {
	since, err := p.since()
	if err != nil || since.IsZero() {
		return h
	}
	return slices.DeleteFunc(h, func(h lock.LeaseInfo) bool { return !h.AcquiredAt.Equal(since) })
}

// goneMessage returns why there is nothing to revoke.
func (p revokePage) goneMessage() string {
	if p.Slot != "" {
		return fmt.Sprintf("The lease with token %s in slot %s of the lock %s has ended. There is nothing to revoke.",
			p.Token, p.Slot, p.Name)
	}
	return fmt.Sprintf("Token %s no longer holds the lock %s. There is nothing to revoke.", p.Token, p.Name)
}

func parseToken(s string) (lock.Token, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || lock.Token(n) > lock.MaxToken {
		return 0, lock.Invalid("token", "must be a whole number from 1 to %d", lock.MaxToken)
	}
	return lock.Token(n), nil
}

// parseSlot returns nil for an empty slot.
func parseSlot(s string) (*int, error) {
	if s == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > lock.MaxHolders {
		return nil, lock.Invalid("slot", "must be a whole number from 0 to %d", lock.MaxHolders)
	}
	return &n, nil
}
