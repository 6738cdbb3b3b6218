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

// The leaseFlags describe the wanted lease, and how long to wait for it.
type leaseFlags struct {
	Holder   string        `placeholder:"TEXT" variable:"PADDOCK_HOLDER" help:"Holder of the lock, a text for people (USER@HOST; with paddock run USER@HOST:PID)."`
	TTL      time.Duration `name:"ttl" default:"30s" help:"How long the lease lasts without a renewal."`
	Grace    time.Duration `default:"0s" help:"How long after its end no other holder is granted the lock."`
	MaxHold  time.Duration `placeholder:"DURATION" help:"How long renewals can extend the lease at most (unlimited)."`
	Shared   bool          `xor:"mode" help:"Acquire the lock in shared mode: readers share it, writers do not."`
	Permits  *int          `xor:"mode" placeholder:"N" help:"Acquire one of N permits of the lock: a semaphore. All clients must give the same N."`
	Wait     waitTime      `default:"0s" help:"How long to wait in the queue: a duration, or forever; 0s does not wait."`
	Metadata string        `placeholder:"JSON" help:"A JSON object that is shown with the lock."`
}

// request returns the acquire of the lease, without a lease_id and without its wait, or a usage error for what no
// service would grant.
func (f leaseFlags) request(name string) (lock.Acquire, error) {
	a := lock.Acquire{
		Name: name, Holder: cmp.Or(f.Holder, defaultHolder()), Mode: lock.Exclusive, TTL: f.TTL, Grace: f.Grace,
		MaxHold: f.MaxHold, Metadata: rawJSON(f.Metadata),
	}
	switch {
	case f.TTL <= 0:
		return a, usagef("--ttl is %v; give %v or more", f.TTL, lock.MinTTL)
	case f.MaxHold < 0:
		return a, usagef("--max-hold is %v; give a positive duration, or leave it out", f.MaxHold)
	case f.Shared:
		a.Mode = lock.Shared
	case f.Permits != nil:
		a.Mode, a.Capacity = lock.Permit, *f.Permits
	}
	return a, checkWidestBounds(a)
}

// options returns the request as options of a guard.
func (f leaseFlags) options(name string) (guard.Options, error) {
	a, err := f.request(name)
	return guard.Options{
		Holder: a.Holder, Mode: a.Mode, Capacity: a.Capacity, TTL: a.TTL, Grace: a.Grace, MaxHold: a.MaxHold,
		Metadata: a.Metadata, Wait: time.Duration(f.Wait),
	}, err
}

// checkWidestBounds returns a usage error if even the widest bounds that a service can have do not allow a.
func checkWidestBounds(a lock.Acquire) error {
	widest, err := lock.Bounds{}.Resolve()
	if err != nil {
		return err
	}
	_, err = a.Resolve(widest)
	return explain(err)
}

// rawJSON returns nil for an empty text.
func rawJSON(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// defaultHolder returns USER@HOST. It names no process: an acquire must be repeated with the same holder, and another
// process may do so.
func defaultHolder() string {
	text := fmt.Sprintf("uid-%d", os.Getuid())
	if us, err := user.Current(); err == nil && us.Username != "" {
		text = us.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return holderText(text+"@"+host, "")
}

// processHolder returns USER@HOST:PID, the default holder of paddock run. The process id distinguishes several runs
// of one user on one machine.
func processHolder() string { return holderText(defaultHolder(), fmt.Sprintf(":%d", os.Getpid())) }

// holderText returns text and suffix as a holder that every service accepts: "?" replaces characters that cannot be
// printed, and text is cut so that the whole fits into lock.MaxHolderLength characters.
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
		return fmt.Errorf("%q is not a waiting time; give a duration such as 90s or 1h, or forever", text)
	}
	*w = waitTime(d)
	return nil
}

// A leaseID is a lease_id on the command line. The error of one that cannot be parsed does not repeat it, since it may
// be a mistyped secret.
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

// The heldFlags identify a lease of the caller.
type heldFlags struct {
	LeaseID leaseID `name:"lease-id" placeholder:"UUID" variable:"PADDOCK_LEASE_ID" help:"The lease_id that acquire printed. Prefer the variable: other users of the machine can see arguments."`
}

// id returns the lease_id, or a usage error that says how to give it.
func (f heldFlags) id() (lock.LeaseID, error) {
	if f.LeaseID == (leaseID{}) {
		return lock.LeaseID{}, usagef("the lease_id is missing; set PADDOCK_LEASE_ID to the lease_id that acquire " +
			"printed, or give --lease-id")
	}
	return lock.LeaseID(f.LeaseID), nil
}
