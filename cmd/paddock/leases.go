package main

import (
	"cmp"
	"context"
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
	"github.com/paddock-lock/paddock/internal/when"
	"github.com/paddock-lock/paddock/lock"
)

type acquireCommand struct {
	Names []string `arg:"" name:"name" complete:"lock" help:"The lock's name, such as jobs:nightly. Several locks are acquired together, all or none. Write NAME,shared or NAME,capacity=N to choose the mode of one of them."`
	serviceFlags
	leaseFlags
	retryFlags
	conflictFlags
	envOutputFlags

	LeaseID leaseID `name:"lease-id" placeholder:"UUID" unset:"random" help:"The lease_id to use, so that you can send the same acquire again. Other users of the machine can see it."`
	Session leaseID `placeholder:"UUID" unset:"none" variable:"PADDOCK_SESSION" help:"The session_id of the session that keeps the lease alive. paddock session sets the variable. Give it without --ttl and --grace: those of the session apply. Prefer the variable to the flag: other users of the machine can see arguments."`
}

func (acquireCommand) Help() string {
	return `Acquires a lock and prints the lease. The lease ends after its TTL unless it is renewed with the printed
lease_id. To run a command while the lease is renewed for you, use paddock run.

Acquire a lock for a minute, and wait for it for up to five:

    paddock acquire jobs:nightly --ttl 1m --wait 5m

In a script, where renew and release find the lease_id in the environment:

    lease=$(paddock acquire jobs:nightly -o env) || exit
    eval "$lease"
    paddock release jobs:nightly

Acquire several locks together, all or none. They have one lease_id and one end; renew and release them together:

    lease=$(paddock acquire accounts:17 accounts:42 rates,shared -o env) || exit
    eval "$lease"
    paddock release $PADDOCK_LOCKS

-o env sets PADDOCK_LEASE_ID and PADDOCK_EXPIRES_AT; PADDOCK_LOCK, PADDOCK_FENCING_TOKEN and PADDOCK_SLOT, of the first
lock in the order of names; PADDOCK_LOCKS, the names of all locks, separated by spaces; and PADDOCK_FENCING_TOKENS and
PADDOCK_SLOTS, such as "accounts:17=10496 accounts:42=10496".

In a command that paddock session runs, the lease belongs to the session and ends with it.

Exit code 75, or that of --conflict-exit-code, means that the lock was not acquired: another holder has it, its work is
done, an operator has frozen it, calls wait for each other in a deadlock, or a limit of the service is reached.`
}

// Run acquires the lock and prints the lease. If the lease cannot be printed it is released, since its lease_id is
// lost.
func (c *acquireCommand) Run(ctx context.Context, p *program) error {
	if c.Holder == "" { // that of the run or the session around it
		c.Holder, _ = p.env(leaseHolderVariable)
	}
	members, o, err := c.options(c.Names)
	if err != nil {
		return err
	}
	if c.Session != (leaseID{}) {
		if c.TTL != lock.DefaultTTL || c.Grace != 0 {
			return usagef("--ttl and --grace are those of the session; leave them out")
		}
		o.SessionID, o.TTL, o.Grace = lock.SessionID(c.Session), 0, 0
	}
	if err := c.check(); err != nil {
		return err
	}
	locks, err := c.client()
	if err != nil {
		return err
	}
	o.LeaseID, o.Retry, o.OnRetry = lock.LeaseID(c.LeaseID), c.forGuard(), p.logRetries()
	acquired := p.showWait(ctx, c.Quiet, locks, members, o)
	grant, err := guard.AcquireAllUnmanaged(ctx, locks, members, o)
	acquired()
	if err != nil && ctx.Err() != nil {
		return &failure{exitNotAcquired, fmt.Errorf("stopped before %s was acquired (%w): %w",
			joined(namesOf(members)), context.Cause(ctx), err)}
	}
	if suspect := explainSuspect(ctx, locks, namesOf(members), err); suspect != nil {
		return &failure{c.ConflictExitCode, suspect} // said also with --quiet: an operator has to look at it
	}
	if err != nil {
		return c.apply(findEnclosingLease(p.env, c.URL).explain(namesOf(members), err))
	}
	if err := p.print(c.Output, showLease(grant)); err != nil {
		r, invalid := lock.Release{Locks: namesOf(members), LeaseID: grant.ID}.Resolve()
		return errors.Join(err, invalid, locks.Release(context.WithoutCancel(ctx), r))
	}
	return nil
}

type renewCommand struct {
	Names []string `arg:"" name:"name" complete:"lock" help:"The lock's name. If several locks were acquired together, all of their names, in any order."`
	serviceFlags
	heldFlags
	retryFlags
	envOutputFlags

	TTL      time.Duration `name:"ttl" unset:"unchanged" help:"New TTL of the lease."`
	Metadata string        `placeholder:"JSON" unset:"unchanged" help:"New metadata of the lease, a JSON object."`
}

func (renewCommand) Help() string {
	return `Sets the end of a lease to one TTL from now, and prints the lease. An ended lease cannot be renewed.

    PADDOCK_LEASE_ID=5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11 paddock renew jobs:nightly

Exit code 76 means that the lease is lost: stop the work. After any other failure the lease may still be yours: go on
until its end, and retry.`
}

func (c *renewCommand) Run(ctx context.Context, p *program) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	locks, err := c.clientWithTimeout(attemptTimeout)
	if err != nil {
		return err
	}
	grant, err := retry(ctx, p.log, c.limit(), func(ctx context.Context) (lock.Grant, error) {
		return locks.Renew(ctx, r)
	})
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, showLease(grant))
}

// request returns the call, or a usage error.
func (c *renewCommand) request() (lock.Renew, error) {
	id, err := c.id()
	if err != nil {
		return lock.Renew{}, err
	}
	widest, err := lock.Bounds{}.Resolve()
	if err != nil {
		return lock.Renew{}, err
	}
	r, err := lock.Renew{Locks: c.Names, LeaseID: id, TTL: c.TTL, Metadata: rawJSON(c.Metadata)}.Resolve(widest)
	return r, explainLocks(c.Names, err)
}

type releaseCommand struct {
	Names []string `arg:"" name:"name" complete:"lock" help:"The lock's name. If several locks were acquired together, all of their names, in any order."`
	serviceFlags
	heldFlags
	retryFlags
}

func (releaseCommand) Help() string {
	return `Releases a lease, or gives up a place in the queue. It prints nothing, also if the lease was released
before.

    PADDOCK_LEASE_ID=5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11 paddock release jobs:nightly

Exit code 76 means that the lease had ended otherwise: work under it may have overlapped with that of another holder.`
}

func (c *releaseCommand) Run(ctx context.Context, p *program) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	r, err := lock.Release{Locks: c.Names, LeaseID: id}.Resolve()
	if err != nil {
		return explainLocks(c.Names, err)
	}
	locks, err := c.clientWithTimeout(attemptTimeout)
	if err != nil {
		return err
	}
	_, err = retry(ctx, p.log, c.limit(), func(ctx context.Context) (struct{}, error) {
		return struct{}{}, locks.Release(ctx, r)
	})
	return explainUnlessStopped(ctx, err)
}

type revokeCommand struct {
	Name string `arg:"" optional:"" complete:"lock" unset:"the session of --session" help:"The lock's name."`
	serviceFlags
	outputFlags

	Session    string    `placeholder:"REF" complete:"session" help:"Revoke this session with all of its leases, instead of a lock: its public name, as list --sessions shows it."`
	Token      *int64    `placeholder:"N" unset:"none; required for a lock" help:"Current fencing token of the lock, as get shows it, so that no later lease is revoked by mistake."`
	Reason     string    `required:"" placeholder:"TEXT" help:"Why. The former holder and the events show it."`
	Slot       *int      `placeholder:"N" help:"Revoke only the lease in this slot, of those with the token."`
	AcquiredAt time.Time `placeholder:"INSTANT" help:"Revoke only the lease that was acquired at this instant: acquired_at of get -o json. Give it with --slot for a shared lease."`
	SkipGrace  bool      `help:"Skip the grace of the lease, also of one that was revoked before: the lock is free at once."`
}

func (revokeCommand) Help() string {
	return `Takes a lease away from its holder, and prints the lock as it is then. The holder's next renewal is refused;
the next grant has a greater token. The grace of the lease, counted from now, passes before another holder is granted
the lock, unless you give --skip-grace. If the lock was acquired together with others, the leases of all of them end.

    paddock get jobs:nightly
    paddock revoke jobs:nightly --token 10496 --reason 'db-3 is being replaced'

A session ends with all of its leases, and its waiters leave their queues. It cannot be renewed any more:

    paddock list --sessions --holder db-3
    paddock revoke --session 7bb9f2a32ab6969f --reason 'db-3 is being replaced'`
}

// Run revokes the lease and prints the lock. It does not retry: after a lost answer another holder may have the lock,
// and an operator has to look at it first.
func (c *revokeCommand) Run(ctx context.Context, p *program) error {
	if c.Session != "" {
		return c.revokeSession(ctx, p)
	}
	if c.Name == "" || c.Token == nil {
		return usagef("give the name of the lock and its --token, or --session; paddock get NAME shows the token")
	}
	r, err := lock.Revoke{
		Name: c.Name, Token: lock.Token(*c.Token), Slot: c.Slot, AcquiredAt: c.AcquiredAt, Reason: c.Reason,
		SkipGrace: c.SkipGrace,
	}.Resolve()
	if err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := locks.Revoke(ctx, r)
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, showLock(found))
}

// revokeSession revokes the session and prints it.
func (c *revokeCommand) revokeSession(ctx context.Context, p *program) error {
	if c.Name != "" || c.Token != nil || c.Slot != nil || !c.AcquiredAt.IsZero() {
		return usagef("--session ends all leases of the session; leave out NAME, --token, --slot and --acquired-at")
	}
	ref, err := lock.ParseSessionRef("session", c.Session)
	if err != nil {
		return explain(err)
	}
	r, err := lock.RevokeSession{Ref: ref, Reason: c.Reason, SkipGrace: c.SkipGrace}.Resolve()
	if err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := locks.RevokeSession(ctx, r)
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, showSession(found))
}

// The leaseFlags describe the wanted lease, and how long to wait for it.
type leaseFlags struct {
	Holder   string        `placeholder:"TEXT" unset:"USER@HOST:PID for paddock run; USER@HOST for paddock acquire, or the holder of the paddock run or session that it is in" variable:"PADDOCK_HOLDER" help:"Holder of the lock, a text for people."`
	TTL      time.Duration `name:"ttl" default:"30s" help:"How long the lease lasts without a renewal."`
	Grace    time.Duration `default:"0s" help:"How long after its end no other holder is granted the lock."`
	MaxHold  time.Duration `unset:"no limit" help:"How long renewals can extend the lease at most."`
	OnExpiry string        `enum:"expire,hold" default:"expire" placeholder:"WHAT" help:"What happens when the lease was not renewed in time: expire, it ends; or hold, the lock is suspect, and granted to no other holder until this one renews or releases it, or an operator revokes it."`
	Shared   bool          `xor:"mode,permits" help:"Acquire the lock in shared mode: readers share it, writers do not."`
	Capacity *int          `xor:"mode" placeholder:"N" help:"Acquire one of N permits of the lock: a semaphore. All clients must give the same N."`
	Permits  *int          `xor:"permits" placeholder:"M" unset:"one" help:"Acquire M of the permits, all or none, as one lease. Give it without --capacity if a rule of the service has the capacity."`
	Wait     waitTime      `default:"0s" placeholder:"DURATION" help:"How long to wait in the queue: a duration, or forever; 0s does not wait."`
	Metadata string        `placeholder:"JSON" help:"A JSON object that is shown with the lock."`
}

// options returns the locks of the arguments, and the options of a guard for them, or a usage error for what no
// service would grant.
func (f leaseFlags) options(args []string) ([]lock.Member, guard.Options, error) {
	o := guard.Options{
		Holder: cmp.Or(f.Holder, defaultHolder()), TTL: f.TTL, Grace: f.Grace, MaxHold: f.MaxHold,
		Metadata: rawJSON(f.Metadata), Stays: f.OnExpiry == "hold", Wait: time.Duration(f.Wait),
	}
	if f.TTL <= 0 {
		return nil, o, usagef("--ttl is %v; give %v or more", f.TTL, lock.MinTTL)
	}
	members, err := f.members(args)
	if err != nil {
		return nil, o, err
	}
	widest, err := lock.Bounds{}.Resolve()
	if err != nil {
		return nil, o, err
	}
	_, err = lock.Acquire{
		Locks: members, Holder: o.Holder, TTL: o.TTL, Grace: o.Grace, MaxHold: o.MaxHold, Metadata: o.Metadata, Stays: o.Stays,
	}.Resolve(widest)
	return members, o, explainLocks(namesOf(members), err)
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
	d, err := when.Duration(string(text))
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a waiting time; give a duration such as 90s, 1h or 1d, or forever", text)
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
