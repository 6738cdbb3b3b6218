package web

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A revokePage asks before it revokes.
type revokePage struct {
	Title   string
	Reader  reader
	Dialog  bool // whether it is the dialog of another page, which the script fills in
	Problem string

	// Which leases are meant, as the request has it. Slot may be empty: all that
	// have the token. Since is when the one in the slot was granted, for a shared
	// lease: the next one there has the same token. It may be empty.
	Name, Token, Slot, Since string

	Holdings  []lock.LeaseInfo // none: the token holds the lock no more, or that is not known
	Back      location
	Reason    string // as it was typed
	SkipGrace bool   // whether the grace is to be skipped
	Form      bool   // whether there is something to revoke
}

func revokePageFrom(v url.Values, by reader) revokePage {
	return revokePage{
		Title: "Revoke a lease", Reader: by, Name: v.Get("name"), Token: v.Get("token"), Slot: v.Get("slot"), Since: v.Get("since"),
		Back: parseLocation(v.Get("back")), Reason: v.Get("reason"), SkipGrace: v.Get("skip_grace") != "", Form: true,
	}
}

// pinned returns the page about the lease in the slot that is there now, and no later one.
func (p revokePage) pinned() revokePage {
	if p.Slot != "" && len(p.Holdings) == 1 && p.Holdings[0].Mode == lock.Shared {
		p.Since = p.Holdings[0].AcquiredAt.UTC().Format(time.RFC3339Nano)
	}
	return p
}

// Question is the page's heading.
func (p revokePage) Question() string {
	switch {
	case !p.Form && !p.Dialog:
		return "Nothing was revoked"
	case len(p.Holdings) > 1:
		return fmt.Sprintf("Revoke all %d leases?", len(p.Holdings))
	}
	return "Revoke this lease?"
}

// Holders returns those holders that the page names.
func (p revokePage) Holders() []lock.LeaseInfo {
	return p.Holdings[:min(len(p.Holdings), maxShown)]
}

// More is how many holders there are beside those named.
func (p revokePage) More() int { return len(p.Holdings) - len(p.Holders()) }

// MaxReason returns the greatest length of a reason, in characters.
func (revokePage) MaxReason() int { return lock.MaxReasonLength }

// target reads which leases are meant.
func (p revokePage) target() (lock.Revoke, error) {
	token, tokenErr := parseToken(p.Token)
	slot, slotErr := parseSlot(p.Slot)
	since, sinceErr := p.since()
	c := lock.Revoke{
		Name: p.Name, Token: token, Slot: slot, AcquiredAt: since, Reason: strings.Join(strings.Fields(p.Reason), " "), SkipGrace: p.SkipGrace,
	}
	return c, cmp.Or(tokenErr, slotErr, sinceErr)
}

// since returns the instant that Since tells, zero if none.
func (p revokePage) since() (time.Time, error) {
	if p.Since == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, p.Since)
	if err != nil {
		return t, lock.Invalid("since", "must be an instant like 2006-01-02T15:04:05Z")
	}
	return t, nil
}

// grantedAtSince returns those leases that were granted at Since, all if there is none.
func (p revokePage) grantedAtSince(h []lock.LeaseInfo) []lock.LeaseInfo {
	since, err := p.since()
	if err != nil || since.IsZero() {
		return h
	}
	return slices.DeleteFunc(h, func(h lock.LeaseInfo) bool { return !h.AcquiredAt.Equal(since) })
}

// goneMessage says that there is nothing to revoke.
func (p revokePage) goneMessage() string {
	if p.Slot != "" {
		return fmt.Sprintf("That lease with token %s in slot %s of the lock %s has ended. There is nothing to revoke.", p.Token, p.Slot, p.Name)
	}
	return fmt.Sprintf("Token %s does not hold the lock %s any more. There is nothing to revoke.", p.Token, p.Name)
}

func parseToken(s string) (lock.Token, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || lock.Token(n) > lock.MaxToken {
		return 0, lock.Invalid("token", "must be a whole number from 1 to %d", lock.MaxToken)
	}
	return lock.Token(n), nil
}

// parseSlot returns nil for no slot.
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
