package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// The leaseFlags say what lease is wanted, and how long it may be waited for.
type leaseFlags struct {
	Holder   string        `placeholder:"TEXT" variable:"PADDOCK_HOLDER" help:"Who takes the lock, for people to read (USER@HOST; with paddock run USER@HOST:PID)."`
	TTL      time.Duration `name:"ttl" default:"30s" help:"How long the lease lives without a renewal."`
	Grace    time.Duration `default:"0s" help:"For how long after its end nobody else may have the lock yet."`
	MaxHold  time.Duration `placeholder:"DURATION" help:"Greatest time for which renewals can keep the lease."`
	Shared   bool          `xor:"mode" help:"Share the lock with others who share it: readers."`
	Permits  *int          `xor:"mode" placeholder:"N" help:"Take one of N permits of the lock: a semaphore. Everybody must name the same N."`
	Wait     waitTime      `default:"0s" help:"How long to wait in the queue: a duration, or forever. At 0s, try only."`
	Metadata string        `placeholder:"JSON" help:"A JSON object that everybody who looks at the lock is shown."`
}

// wanted returns the acquire of the lease, without a lease_id and without its wait.
// What no service would grant is a usage error.
func (f leaseFlags) wanted(name string) (lock.Acquire, error) {
	a := lock.Acquire{
		Name: name, Holder: cmp.Or(f.Holder, whoWeAre()), Mode: lock.Exclusive, TTL: f.TTL, Grace: f.Grace, MaxHold: f.MaxHold,
		Metadata: metadataOf(f.Metadata),
	}
	switch {
	case f.TTL <= 0:
		return a, usagef("--ttl is %v; give %v or more", f.TTL, lock.MinTTL)
	case f.MaxHold < 0:
		return a, usagef("--max-hold is %v; give how long the lease may be kept, or leave it out", f.MaxHold)
	case f.Shared:
		a.Mode = lock.Shared
	case f.Permits != nil:
		a.Mode, a.Capacity = lock.Permit, *f.Permits
	}
	return a, checkWidely(a)
}

// options returns what a guard is to ask for.
func (f leaseFlags) options(name string) (guard.Options, error) {
	a, err := f.wanted(name)
	return guard.Options{
		Holder: a.Holder, Mode: a.Mode, Capacity: a.Capacity, TTL: a.TTL, Grace: a.Grace, MaxHold: a.MaxHold, Metadata: a.Metadata,
		Wait: time.Duration(f.Wait),
	}, err
}

// checkWidely returns a usage error if not even the widest bounds allow a.
func checkWidely(a lock.Acquire) error {
	widest, err := lock.Bounds{}.Resolve()
	if err != nil {
		return err
	}
	_, err = a.Resolve(widest)
	return refused(err)
}

// metadataOf returns nil for no text.
func metadataOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// whoWeAre is the holder where none is given: the user, as far as that is known,
// at the machine. It names no process: the same acquire must be sent again with the same
// holder, and another process may do so.
func whoWeAre() string {
	who := fmt.Sprintf("uid-%d", os.Getuid())
	if us, err := user.Current(); err == nil && us.Username != "" {
		who = us.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return holderText(who+"@"+host, "")
}

// thisProcess returns the default holder of paddock run: whoWeAre and the process id, which
// tells several runs of one user on one machine apart.
func thisProcess() string { return holderText(whoWeAre(), fmt.Sprintf(":%d", os.Getpid())) }

// holderText returns text and suffix as a holder that every service accepts: what cannot be
// printed is replaced by "?", and text is cut so that all of it fits into
// lock.MaxHolderLength characters.
func holderText(text, suffix string) string {
	printable := []rune(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text))
	return string(printable[:min(len(printable), lock.MaxHolderLength-utf8.RuneCountInString(suffix))]) + suffix
}

// A waitTime is how long to wait for a lock.
type waitTime time.Duration

// forever is the waitTime that ends with the command.
const forever = waitTime(guard.Forever)

// UnmarshalText reads a duration, or the word forever.
func (w *waitTime) UnmarshalText(text []byte) error {
	if string(text) == "forever" {
		*w = forever
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not how long one can wait; give a duration such as 90s or 1h, or forever", text)
	}
	*w = waitTime(d)
	return nil
}

// A leaseID is a lease_id on the command line. That it cannot be read is said
// without repeating it, since it is a secret all the same.
type leaseID lock.LeaseID

// UnmarshalText reads a UUID.
func (id *leaseID) UnmarshalText(text []byte) error {
	parsed, err := uuid.ParseBytes(text)
	if err != nil || parsed == uuid.Nil {
		return errors.New("is not a random UUID")
	}
	*id = leaseID(parsed)
	return nil
}

// The heldFlags say which lease is meant by who has it.
type heldFlags struct {
	LeaseID leaseID `name:"lease-id" placeholder:"UUID" variable:"PADDOCK_LEASE_ID" help:"The lease_id that acquire printed. Better in the environment: arguments are seen by other users of the machine, variables are not."`
}

// known returns the lease_id, or a usage error that says how to give it.
func (f heldFlags) known() (lock.LeaseID, error) {
	if f.LeaseID == (leaseID{}) {
		return lock.LeaseID{}, usagef("which lease? Set PADDOCK_LEASE_ID to the lease_id that acquire printed, or give --lease-id")
	}
	return lock.LeaseID(f.LeaseID), nil
}
