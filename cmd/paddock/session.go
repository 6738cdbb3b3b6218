package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/supervise"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

type sessionCommand struct {
	Command []string `arg:"" passthrough:"partial" help:"The command and its arguments, preferably after --."`
	serviceFlags
	retryFlags

	Holder    string         `placeholder:"TEXT" unset:"USER@HOST:PID" variable:"PADDOCK_HOLDER" help:"Holder of the session, a text for people."`
	TTL       time.Duration  `name:"ttl" default:"30s" help:"How long the session lasts without a heartbeat."`
	Grace     time.Duration  `default:"0s" help:"How long after the end of the session its locks are not granted to other holders."`
	Metadata  string         `placeholder:"JSON" help:"A JSON object that is shown with the session."`
	KillAfter *time.Duration `placeholder:"DURATION" unset:"5s, or as much as the TTL allows" help:"How long the command may take to end after SIGTERM before it is killed; 0s kills it at once."`
}

func (sessionCommand) Help() string {
	return `paddock session [flags] -- CMD ARGS…

Opens a session, runs a command, and renews the session while the command runs. Stops the command before the session can
end. Closes the session when no process that the command started is left. The command acquires any number of locks in
the session:

    paddock session -- sh -c '
        paddock acquire accounts:17 && paddock acquire accounts:42 --wait 10s && ./transfer 17 42'

paddock acquire finds the session in the environment variable PADDOCK_SESSION. The leases need no renewal: they end when
the session ends. PADDOCK_SESSION is a secret: a process that knows it can use and close the session. The command also
gets PADDOCK_LEASE_HOLDER and PADDOCK_URL.

PADDOCK_TASK names the thread of work of the session, so that the service finds deadlocks: if sessions that hold locks
wait for each other in a circle, one of the calls is refused with exit code 75 and a description of the circle. A call
that waits for a lock of its own thread is refused at once. So give each of several jobs that run side by side in one
session a part of its own, such as PADDOCK_TASK=$PADDOCK_TASK.1.

paddock run in the command does not join the session: it keeps a lease of its own, which ends with that run. It is part
of the same thread of work.

paddock session handles signals, the loss of the session, and processes that the command leaves running as paddock run
does.

Exit codes: that of the command, or 128+n if signal n ended it, or came before it started. Also 64: wrong command line,
or an invalid request. 69: the service cannot be reached. 70: internal error of the service. 75: a limit of the service
is reached. 76: the session was lost, whatever the command returned. 77: not allowed. 126: the command cannot be
executed. 127: it was not found. 1: another error.`
}

// check returns a usage error if even the widest bounds that a service can have do not allow the session.
func (c *sessionCommand) check() error {
	widest, err := lock.Bounds{}.Resolve()
	if err != nil {
		return err
	}
	_, err = lock.OpenSession{
		Holder: cmp.Or(c.Holder, processHolder()), TTL: c.TTL, Grace: c.Grace, Metadata: rawJSON(c.Metadata),
	}.Resolve(widest)
	return explain(err)
}

// showSession prints one session.
func (c *getCommand) showSession(ctx context.Context, p *program) error {
	ref, err := lock.ParseSessionRef("session", c.Session)
	if err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, func(ctx context.Context) (lock.SessionInfo, error) { return locks.Session(ctx, ref) })
	if err != nil {
		return err
	}
	return p.print(c.Output, showSession(found))
}

// listSessions prints the open sessions.
func (c *listCommand) listSessions(ctx context.Context, p *program) error {
	if c.Prefix != "" || c.Contains != "" || c.State != "" || c.Contended || c.Sort != "" {
		return usagef("--sessions can be combined only with --holder and --limit; leave out the other filters")
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, func(ctx context.Context) ([]lock.SessionInfo, error) { return c.collectSessions(ctx, p, locks) })
	if err != nil {
		return err
	}
	return p.print(c.Output, showSessions(found))
}

// collectSessions reads all pages, or as many as the limit needs.
func (c *listCommand) collectSessions(ctx context.Context, p *program, locks paddock.Service) (found []lock.SessionInfo, err error) {
	for q := (paddock.SessionQuery{Holder: c.Holder, Limit: paddock.MaxLimit}); ; {
		if c.Limit > 0 {
			q.Limit = min(paddock.MaxLimit, c.Limit-len(found))
		}
		page, err := locks.Sessions(ctx, q)
		if err != nil {
			return nil, err
		}
		warnUnreadable(p.log, page.Unreadable)
		found = append(found, page.Items...)
		if q.Cursor = page.Next; q.Cursor == "" || c.Limit > 0 && len(found) >= c.Limit {
			return found, nil
		}
	}
}

// showSession returns the output for a session with what it keeps alive.
func showSession(s lock.SessionInfo) output {
	return output{wire: wire.SessionInfoOf(s), names: []string{s.Ref.String()}, table: func(t *table) {
		t.field("SESSION", s.Ref.String())
		t.field("HOLDER", s.Holder)
		t.field("OPENED", local(s.OpenedAt))
		if s.Ended != 0 {
			t.field("ENDED", fmt.Sprintf("%s, %s", local(s.EndedAt), s.Ended))
			if s.Reason != "" {
				t.field("REASON", s.Reason)
			}
			if s.RevokedBy != "" {
				t.field("REVOKED BY", s.RevokedBy)
			}
		} else {
			t.field("EXPIRES", fmt.Sprintf("%s (in %s)", local(s.ExpiresAt), short(s.Remaining)))
		}
		t.field("LEASES", strconv.Itoa(s.Leases))
		t.field("WAITING", strconv.Itoa(s.Places))
		if s.Metadata != nil {
			t.field("METADATA", string(s.Metadata))
		}
		if len(s.Locks) == 0 {
			return
		}
		t.head("LOCK", "MODE", "TOKEN", "PLACE")
		for _, l := range s.Locks {
			place := none
			if l.Place > 0 {
				place = strconv.FormatInt(l.Place, 10)
			}
			t.row(l.Name, modeAndSlot(l.Mode, l.Slot, l.Slots), token(l.Token), place)
		}
	}}
}

// showSessions returns the output for many sessions, one per row.
func showSessions(all []lock.SessionInfo) output {
	refs := namesIn(all, func(s lock.SessionInfo) string { return s.Ref.String() })
	return output{wire: wire.MapSlice(all, wire.SessionItemOf), names: refs, empty: "No open sessions found.", table: func(t *table) {
		t.head("SESSION", "HOLDER", "OPENED", "EXPIRES", "LEFT", "LEASES", "WAITING")
		for _, s := range all {
			t.row(s.Ref.String(), s.Holder, local(s.OpenedAt), local(s.ExpiresAt), short(s.Remaining), strconv.Itoa(s.Leases),
				strconv.Itoa(s.Places))
		}
	}}
}

// A heldSession is a session as what a command runs under.
type heldSession struct{ *guard.Session }

// Release closes the session.
func (s heldSession) Release(ctx context.Context) error { return s.Close(ctx) }

// sessionTask returns the task of the commands in a session: that of the session, as a part of the task around it.
func (p *program) sessionTask(ref lock.SessionRef) string {
	outer, _ := p.env("PADDOCK_TASK")
	if task := string(ref.Task()); outer == "" || len(outer)+1+len(task) > lock.MaxTaskIDLength {
		return task
	}
	return outer + "." + string(ref.Task())
}

// Run runs the command in a session. Its error has the exit code of the command, unless the session was not opened, or
// was lost.
func (c *sessionCommand) Run(ctx context.Context, p *program) error {
	stderr := supervise.NewAsyncStderr(p.stderr)
	defer stderr.Close()
	reserved, err := margin(c.KillAfter, c.TTL)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	locks, err := c.client()
	if err != nil {
		return err
	}
	path, args, err := p.findCommand(c.Command, "paddock session")
	if err != nil {
		return err
	}
	o := guard.SessionOptions{
		Holder: cmp.Or(c.Holder, processHolder()), TTL: c.TTL, Grace: c.Grace, Metadata: rawJSON(c.Metadata), Margin: reserved,
		Retry: c.forGuard(), OnRetry: p.logRetries(), OnState: reportRisk("the session", stderr),
	}
	signals := supervise.Listen()
	defer signals.Stop()
	session, err := beforeSignal(ctx, signals, "the session was opened", func(ctx context.Context) (heldSession, error) {
		s, err := guard.OpenSession(ctx, locks, o)
		return heldSession{s}, explain(err)
	})
	if err != nil {
		return err
	}
	command := &supervise.Command{
		Path: path, Args: args, Lease: session, KillAfter: reserved - slack(c.TTL), Slack: slack(c.TTL), Signals: signals, Stderr: stderr,
		Env: environmentWith([]variable{
			{"PADDOCK_SESSION", uuid.UUID(session.ID()).String()}, {leaseHolderVariable, o.Holder}, {"PADDOCK_URL", c.URL},
			{"PADDOCK_TASK", p.sessionTask(session.Ref())},
		}),
	}
	result, err := command.Run()
	unclosed := "the session was not closed; its locks become free when it ends"
	return finish(context.WithoutCancel(ctx), "session", unclosed, session, stderr, result, err)
}
