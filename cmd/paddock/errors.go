package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/supervise"
	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/internal/pgversion"
	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
)

// The exit codes: those of sysexits.h and of a shell.
const (
	exitOK            = 0
	exitFailed        = 1
	exitUsage         = 64
	exitUnreachable   = 69
	exitInternal      = 70
	exitNotAcquired   = 75
	exitLeaseLost     = 76
	exitNotAllowed    = 77
	exitNotExecutable = supervise.ExitNotExecutable
	exitNotFound      = supervise.ExitNotFound
	exitSignalled     = supervise.ExitSignalled
)

// exitTexts returns what the exit codes mean, as doc.go lists them.
func exitTexts() []struct{ code, text string } {
	return []struct{ code, text string }{
		{"0", "success, or a service that was stopped by SIGINT or SIGTERM"},
		{"1", "failed; standard error says why"},
		{"64", "wrong command line, or none (help goes to standard error), or a request that the service refuses as invalid"},
		{"69", "the database or the service cannot be reached, or the outcome is unknown"},
		{"70", "internal error of the service"},
		{"75", "not acquired: another holder has the lock, calls wait for each other in a deadlock, or a limit is reached"},
		{"76", "the lease or the session was lost; token verify: the token is not current"},
		{"77", "not allowed: the API key is missing, invalid, or lacks the right; or the database role lacks a right"},
		{"126", "run: the command cannot be executed"},
		{"127", "run: the command was not found"},
	}
}

// A failure is an error with an exit code of its own.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// errAlreadyReported is the failure of a command of paddock run, which has printed its own message.
var errAlreadyReported = errors.New("the command has failed")

// usagef returns the failure of a wrong command line.
func usagef(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// unreachablef returns the failure to connect to the database or the service.
func unreachablef(format string, args ...any) error {
	return &failure{exitUnreachable, fmt.Errorf(format, args...)}
}

// exitCode returns the exit code of a command that ended with err.
func exitCode(err error) int {
	var f *failure
	var start *supervise.StartError
	var pooler *poolmode.Error
	var tooOld *pgversion.TooOldError
	var encoding *pgversion.EncodingError
	var rights *store.RightsError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &start):
		return start.ExitCode
	case errors.Is(err, lock.ErrHeld), errors.Is(err, lock.ErrAlreadyDone), errors.Is(err, lock.ErrFrozen), errors.Is(err, lock.ErrTooManyWaiters), errors.Is(err, lock.ErrTooManyLeases),
		errors.Is(err, lock.ErrRateLimited), errors.Is(err, lock.ErrDeadlock), errors.Is(err, lock.ErrTreeBusy):
		return exitNotAcquired
	case errors.Is(err, lock.ErrLeaseLost), errors.Is(err, lock.ErrSessionLost):
		return exitLeaseLost
	case errors.Is(err, lock.ErrKeyMissing), errors.Is(err, lock.ErrKeyInvalid), errors.Is(err, lock.ErrKeyExpired),
		errors.Is(err, lock.ErrRoleMissing), errors.Is(err, lock.ErrNameNotAllowed), errors.Is(err, server.ErrCrossOrigin),
		errors.As(err, &rights), pgconnect.Denied(err):
		return exitNotAllowed
	case errors.Is(err, lock.ErrInvalid), errors.Is(err, lock.ErrLeaseIDInUse), errors.Is(err, lock.ErrLeaseInSet),
		errors.Is(err, lock.ErrSessionIDInUse), errors.Is(err, lock.ErrCapacityMismatch), errors.Is(err, lock.ErrTreeOverlaps), errors.Is(err, server.ErrNoRoute),
		errors.As(err, &pooler), errors.As(err, &tooOld), errors.As(err, &encoding):
		return exitUsage
	case errors.Is(err, lock.ErrUnavailable), errors.Is(err, lock.ErrUnknownOutcome):
		return exitUnreachable
	case errors.Is(err, lock.ErrInternal):
		return exitInternal
	default:
		return exitFailed
	}
}

// flagOf returns the argument that gives a field of a request, empty if there is none.
func flagOf(field string) string {
	return map[string]string{
		"name": "NAME", "names": "NAME", "lock": "NAME", "locks": "NAME", "lease_id": "--lease-id", "LeaseIDFile": "--lease-id-file",
		"holder": "--holder", "mode": "--shared, --capacity",
		"TTL": "--ttl", "Margin": "--kill-after", "MaxHold": "--max-hold", "Wait": "--wait",
		"once": "--once-per", "once_per": "--once-per", "time_zone": "--tz", "closed_ms": "--once-per, --at-least",
		"scope": "SCOPE", "for_ms": "--for", "max_ttl_ms": "--max-ttl", "min_grace_ms": "--min-grace", "max_leases": "--max-leases",
		"capacity": "--capacity", "permits": "--permits", "ttl_ms": "--ttl", "grace_ms": "--grace", "max_hold_ms": "--max-hold", "on_expiry": "--on-expiry",
		"metadata": "--metadata", "value": "--value", "where": "--where", "root": "ROOT", "task_id": "PADDOCK_TASK", "Task": "PADDOCK_TASK", "wait_ms": "--wait", "fencing_token": "--token", "slot": "--slot",
		"acquired_at": "--acquired-at", "reason": "--reason", "prefix": "--prefix", "state": "--state",
		"contains": "--contains", "session_id": "--session", "session": "--session", "sort": "--sort", "limit": "--limit", "cursor": "--from",
	}[field]
}

// notAcquired begins the text of an error if another client has the lock, or an operator has closed it.
const notAcquired = "not acquired: "

// explain returns an error of the service in terms of the command line, with its exit code. Other errors it returns
// unchanged.
func explain(err error) error {
	var e *lock.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Code == lock.ErrInvalid && flagOf(e.Field) != "":
		return explainInvalid(flagOf(e.Field), e.Detail)
	case e.Code == lock.ErrLeaseInSet:
		return usagef("the lock was acquired together with others; give all of their names: %s",
			printable.Text(strings.Join(e.Set, " ")))
	case e.Code == lock.ErrHeld && (e.Holder != "" || len(e.Blocked) > 0):
		return &failure{exitNotAcquired, errors.New(notAcquired + heldBy(e) + " Wait longer with --wait, or try again later.")}
	case e.Code == lock.ErrAlreadyDone:
		return &failure{exitNotAcquired, errors.New(notAcquired + doneText(e) + ". Try again then, or wait with --wait.")}
	case e.Code == lock.ErrFrozen:
		return &failure{exitNotAcquired, errors.New(frozenText(e))}
	case e.Code == lock.ErrDeadlock:
		return &failure{exitNotAcquired, errors.New(printable.Text(withDurations(e.Detail)))}
	case e.Code == lock.ErrKeyMissing:
		return &failure{exitNotAllowed, errors.New("the service requires an API key: set PADDOCK_KEY, or put the key " +
			"into a file and give --key-file")}
	case e.Reason != "":
		return &failure{exitCode(err), errors.New(printable.Text(withDurations(err.Error())))}
	}
	if text := withDurations(err.Error()); text != err.Error() {
		return &reworded{text, err}
	}
	return err
}

// explainInvalid returns the error of an invalid field, which the flag gives.
func explainInvalid(flag, detail string) error {
	field, rest, _ := strings.Cut(detail, " ")
	if text := withDurations(rest); text != rest && flagOf(field) == flag {
		return usagef("%s %s", flag, text)
	}
	return usagef("%s: %s", flag, withDurations(detail))
}

// A reworded error is another one in the words of the command line.
type reworded struct {
	text string
	err  error
}

func (r *reworded) Error() string { return r.text }

func (r *reworded) Unwrap() error { return r.err }

// What the texts of the service have in milliseconds: bounds, those of a rule, the value of a field, and times.
var (
	boundsInMs = regexp.MustCompile(`is (-?\d+|too large|too small); give (\d+) to (\d+) \(milliseconds\)`)
	ruleInMs   = regexp.MustCompile(`is (\d+); give (at most|at least) (\d+): the rule for`)
	fieldInMs  = regexp.MustCompile(`\b([a-z_]+_ms)\b( \d+\b)?`)
	timeInMs   = regexp.MustCompile(`\b(\d+) ms\b`)
)

// withDurations returns a text of the service with durations as a flag gives them, and with the flags of their fields.
func withDurations(text string) string {
	text = boundsInMs.ReplaceAllStringFunc(text, func(found string) string {
		m := boundsInMs.FindStringSubmatch(found)
		return "is " + inMs(m[1]) + "; give " + inMs(m[2]) + " to " + inMs(m[3])
	})
	text = ruleInMs.ReplaceAllStringFunc(text, func(found string) string {
		m := ruleInMs.FindStringSubmatch(found)
		return "is " + inMs(m[1]) + "; give " + m[2] + " " + inMs(m[3]) + ": the rule for"
	})
	text = fieldInMs.ReplaceAllStringFunc(text, func(found string) string {
		m := fieldInMs.FindStringSubmatch(found)
		if value, given := strings.CutPrefix(m[2], " "); given {
			return cmp.Or(flagOf(m[1]), m[1]) + " " + inMs(value)
		}
		return cmp.Or(flagOf(m[1]), m[1])
	})
	text = strings.ReplaceAll(text, "--wait (not in a batch)", "--wait")
	return timeInMs.ReplaceAllStringFunc(text, func(found string) string { return inMs(strings.TrimSuffix(found, " ms")) })
}

// inMs returns a number of milliseconds as a flag gives it, and other text unchanged.
func inMs(text string) string {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms > math.MaxInt64/int64(time.Millisecond) {
		return text
	}
	return durationText(time.Duration(ms) * time.Millisecond)
}

// The conflictFlags say what happens if a lock is not acquired.
type conflictFlags struct {
	Quiet            bool `short:"q" help:"Say nothing if the lock is not acquired, unless it is suspect, and show no progress."`
	ConflictExitCode int  `default:"75" placeholder:"N" help:"Exit code if the lock is not acquired: 0 to 255. For cron, 0 makes it no failure."`
}

// check returns a usage error for what is no exit code.
func (f conflictFlags) check() error {
	if f.ConflictExitCode < 0 || f.ConflictExitCode > 255 {
		return usagef("--conflict-exit-code is %d; give 0 to 255", f.ConflictExitCode)
	}
	return nil
}

// apply returns the error of an acquire with the wanted exit code, if it says that the lock was not acquired.
func (f conflictFlags) apply(err error) error {
	if exitCode(err) != exitNotAcquired {
		return err
	}
	if f.Quiet {
		err = errAlreadyReported
	}
	return &failure{f.ConflictExitCode, err}
}

// explainUnlessStopped does what explain does, unless ctx has ended: then the error says that the command was stopped.
func explainUnlessStopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &failure{exitFailed, fmt.Errorf("stopped before it was done (%w): %w", context.Cause(ctx), err)}
	}
	return explain(err)
}

// heldBy returns a sentence that names the holder of the lock, or of each lock of a set that is in the way.
func heldBy(e *lock.Error) string {
	if len(e.Blocked) > 0 {
		texts := make([]string, len(e.Blocked))
		for i, b := range e.Blocked {
			texts[i] = blockedText(b)
		}
		return strings.Join(texts, "; ") + "."
	}
	if e.Holder == "" {
		return printable.Text(e.Detail)
	}
	text := printable.Text(holdsText(e.Holder, "the lock", e.RetryAfter, e.Suspect))
	if e.Ahead > 0 {
		text += fmt.Sprintf("; %d waiting", e.Ahead)
	}
	return text + "."
}

// holdsText says who holds a lock, and for how long.
func holdsText(holder, name string, left time.Duration, suspect bool) string {
	if suspect {
		return fmt.Sprintf("%s holds %s and has not renewed it in time, so it is suspect until an operator has looked at the work and "+
			"revokes the lease", holder, name)
	}
	return fmt.Sprintf("%s holds %s for another %s, unless it renews", holder, name, short(left))
}

// blockedText returns what blocks one lock of a set.
func blockedText(b lock.BlockedLock) string {
	text := b.Name + " is not free"
	if b.Holder != "" {
		text = holdsText(b.Holder, b.Name, b.RetryAfter, b.Suspect)
	}
	if b.Ahead > 0 {
		text += fmt.Sprintf(", %d waiting", b.Ahead)
	}
	return printable.Text(text)
}

// An enclosingLease is the one under which paddock run has started this process. The zero value means none.
type enclosingLease struct {
	locks []string
	token string // may be empty
}

// findEnclosingLease returns the enclosing lease that the environment names, or none if that is a lease of another
// service than the one at url.
func findEnclosingLease(env lookup, url string) enclosingLease {
	names, _ := env("PADDOCK_LOCKS")
	if names == "" {
		names, _ = env("PADDOCK_LOCK")
	}
	if at, ok := env("PADDOCK_URL"); ok && at != url {
		return enclosingLease{}
	}
	token, _ := env("PADDOCK_FENCING_TOKEN")
	if _, err := strconv.ParseInt(token, 10, 64); err != nil {
		token = ""
	}
	return enclosingLease{locks: strings.Fields(names), token: token}
}

// explain does what explainLocks does. If one of the locks of these names is held, and this process already runs under
// a lease of it, the error says so: the process would wait for itself.
func (l enclosingLease) explain(names []string, err error) error {
	var held *lock.Error
	if !errors.As(err, &held) || held.Code != lock.ErrHeld {
		return explainLocks(names, err)
	}
	all := names
	if len(held.Blocked) > 0 {
		names = nil
		for _, b := range held.Blocked {
			names = append(names, b.Name)
		}
	}
	i := slices.IndexFunc(names, func(name string) bool { return slices.Contains(l.locks, name) })
	if i < 0 {
		return explainLocks(all, err)
	}
	source := "from PADDOCK_LOCK"
	if l.token != "" {
		source = "token " + l.token + ", " + source
	}
	return nameLocks(all, &failure{exitNotAcquired, fmt.Errorf("%s This process already runs under a lease of %s (%s); locks are "+
		"not re-entrant. Leave out the inner paddock, or use another lock", heldBy(held), names[i], source)})
}
