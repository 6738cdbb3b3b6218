package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/supervise"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// defaultKillAfter is how long a command may take to end by default.
	defaultKillAfter = 5 * time.Second
	// maxSlack bounds the time that is reserved to notice a loss, and for killed processes to be gone. It is a tenth
	// of the TTL if that is less.
	maxSlack = time.Second
)

type runCommand struct {
	Name    string   `arg:"" optional:"" complete:"lock" unset:"the locks of --lock" help:"The lock's name, such as jobs:nightly. Write NAME,shared or NAME,capacity=N to choose its mode."`
	Command []string `arg:"" optional:"" unset:"none; it is required" passthrough:"partial" help:"The command and its arguments, preferably after --."`
	serviceFlags
	leaseFlags
	onceFlags
	retryFlags
	conflictFlags

	Locks       []string       `name:"lock" sep:"none" placeholder:"NAME" complete:"lock" help:"A lock, instead of the argument NAME. Repeat it for several locks, which are acquired together, all or none. Write -- before the command then."`
	KillAfter   *time.Duration `placeholder:"DURATION" unset:"5s, or as much as the TTL allows" help:"How long the command may take to end after SIGTERM before it is killed; 0s kills it at once."`
	LeaseIDFile string         `name:"lease-id-file" placeholder:"FILE" help:"Keep the lease_id in FILE until the lock is released, so that a restarted container goes on with the lease, the token and the place in the queue of the one that was killed. A run of other locks than those of FILE is refused. Use it only where nothing of that one can still run."`
	MetricsFile string         `placeholder:"FILE" help:"Write metrics of this run to FILE, for the textfile collector of Prometheus's node_exporter: a name that ends in .prom, in its directory. It stays there afterwards."`
}

func (runCommand) Help() string {
	return `paddock run [flags] NAME -- CMD ARGS…
paddock run [flags] --lock NAME --lock NAME… -- CMD ARGS…

Runs a command while it holds a lock: acquires the lock, renews the lease, stops the command before the lease can
end, and releases the lock when no process that the command started is left. If the lock is held it fails, or waits
with --wait.

A line for cron on several machines, one of which does the work. The others say nothing, and do not fail:

    */5 * * * *  paddock run -q --conflict-exit-code 0 --url http://locks.example:8080 jobs:mail -- /usr/local/bin/send-mail

The same for a job that may be over before the clock of another machine reaches the same minute. It is run once a day,
and not again within ten seconds of its start:

    0 3 * * *  paddock run --once-per day --tz Europe/Berlin --at-least 10s jobs:report -- /usr/local/bin/report

With --once-per, paddock does not run the command if it was done in this period: it says on standard error who did it
and when (not with --quiet or --log-level warn), and exits with 0. The clock of the database, at the start of the
command, tells the period. A command is done if it ends with exit code 0 by itself. If it fails, is told to stop or is
killed, the lock stays open, and the next paddock run in the period runs it. While another machine runs it, the exit
code is 75; with --wait paddock waits, and runs the command if that one fails. A duration counts from the start of the
command: for a job that is started every 24 hours give a little less, such as --once-per 23h, or day.

Wait for the lock for up to ten minutes, and give the command 15 seconds to end if the lock is lost:

    paddock run --wait 10m --ttl 1m --kill-after 15s db:migrate -- ./migrate up

Hold several locks, all or none, one of them shared. No lock is held while the others are waited for:

    paddock run --wait 1m --lock accounts:17 --lock accounts:42 --lock rates,shared -- ./transfer 17 42

A systemd service, for which 75 (another holder has the lock) is no failure:

    [Service]
    ExecStart=/usr/local/bin/paddock run --wait forever jobs:billing -- /usr/local/bin/billing
    KillMode=mixed
    SuccessExitStatus=75

A container that may be killed and restarted. The volume survives the container; the next one need not wait for the end
of the lease that the killed one has left:

    paddock run --wait forever --lease-id-file /state/lease jobs:billing -- /usr/local/bin/billing

The command gets the environment variables PADDOCK_LOCK, PADDOCK_FENCING_TOKEN, PADDOCK_LEASE_HOLDER, PADDOCK_URL and,
with a shared lease or a permit, PADDOCK_SLOT. A paddock run in the command is a holder of its own, named by its own
process, unless you set PADDOCK_HOLDER. With several locks, PADDOCK_LOCK, PADDOCK_FENCING_TOKEN and PADDOCK_SLOT are
those of the first lock in the order of names. PADDOCK_LOCKS has the names of all locks, separated by spaces;
PADDOCK_FENCING_TOKENS and PADDOCK_SLOTS have the value of each lock, such as "accounts:17=10496 accounts:42=10496".
All locks have the same token, except a shared lock that joins other readers.

PADDOCK_TASK names the thread of work, so that the service finds deadlocks. If calls that hold locks wait for each other
in a circle, one or more are refused with exit code 75 and a description of the circle.

In a command of paddock session the lease does not join the session: it is renewed by this run and ends with it.

The command has the standard input and outputs of paddock, and its own process group. SIGTERM, SIGINT, SIGHUP, SIGQUIT,
SIGUSR1 and SIGUSR2 are passed on to that group. A SIGHUP or SIGINT that was ignored when paddock started stays ignored,
by paddock and by the command: nohup paddock run survives a hang-up.

The lease is lost if it cannot be renewed in time (a shorter outage does not matter), if an operator revokes it, and
when --max-hold is over. The command then gets SIGTERM, and SIGKILL after --kill-after, all before the lease ends. A
revoked lease has ended, which paddock hears at once: with --grace the command gets SIGTERM, and SIGKILL shortly before
the grace ends, unless --kill-after is 0s. Without a grace, or if paddock was suspended for too long, the command is
killed at once: another holder may have the lock.

Locks are not re-entrant: a paddock run of the same lock inside the command is refused.

Processes that the command leaves running are stopped the same way before the lock is released, on Linux also daemons
in their own sessions: the lock covers them too. If paddock itself is killed with SIGKILL, Linux kills the command,
but not the processes that it started. While paddock is suspended (SIGSTOP) it protects nothing; then only the
fencing token does, where the write lands.

Exit codes: that of the command, or 128+n if signal n ended it, or the wait for the lock. Also 64: wrong command line,
or an invalid request. 69: the service cannot be reached. 70: internal error of the service. 75, or that of
--conflict-exit-code: another holder has the lock, an operator has frozen it, calls wait for each other in a deadlock,
or a limit of the service is reached. 76: the lease was lost, whatever the command returned. 77: not allowed. 126: the
command cannot be executed. 127: it was not found. 1: another error.`
}

// Run runs the command while it holds the lock. Its error has the exit code of the command, unless the lock was not
// acquired or the lease was lost.
func (c *runCommand) Run(ctx context.Context, p *program) (err error) {
	stderr := supervise.NewAsyncStderr(p.stderr)
	defer stderr.Close()
	before, err := c.separate(p.args)
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	members, o, err := c.options(stderr)
	if err != nil {
		return err
	}
	locks, err := c.client()
	if err != nil {
		return err
	}
	path, args, err := p.findCommand(c.Command, before)
	if err != nil {
		return err
	}
	o.OnRetry = p.logRetries()
	var metrics *metricsFile
	if c.MetricsFile != "" {
		if metrics, err = newMetricsFile(c.MetricsFile, joined(namesOf(members)), stderr); err != nil {
			return err
		}
		o.Observer = metrics
		defer func() { metrics.finish(exitCode(err)) }()
	}
	signals := supervise.Listen()
	defer signals.Stop()
	enclosing := findEnclosingLease(p.env, c.URL)
	acquired := p.showWait(ctx, c.Quiet, locks, members, o)
	lease, err := c.acquire(ctx, locks, members, o, signals)
	acquired()
	if done := (*lock.Error)(nil); c.OncePer != "" && errors.As(err, &done) && done.Code == lock.ErrAlreadyDone {
		if p.log.Enabled(ctx, slog.LevelInfo) && !c.Quiet {
			stderr.Printf("%s is not run: %s", joined(namesOf(members)), doneText(done))
		}
		return nil
	}
	if suspect := explainSuspect(ctx, locks, namesOf(members), err); suspect != nil {
		return &failure{c.ConflictExitCode, suspect} // said also with --quiet: an operator has to look at it
	}
	if err != nil {
		return c.apply(enclosing.explain(namesOf(members), err))
	}
	if id, _ := p.env("PADDOCK_SESSION"); id != "" {
		stderr.Printf("this run has a lease of its own, which does not join the session of PADDOCK_SESSION")
	}
	metrics.held(lease)
	command := &supervise.Command{
		Path: path, Args: args, Env: commandEnvironment(lease, c.URL),
		Lease: lease, KillAfter: o.Margin - slack(c.TTL), Slack: slack(c.TTL), Signals: signals, Stderr: stderr,
	}
	result, err := command.Run()
	unreleased := joined(namesOf(members)) + " was not released; it becomes free when the lease ends"
	if !isDone(result, err) {
		return finish(context.WithoutCancel(ctx), "lease", unreleased, lease, stderr, result, err)
	}
	done := &doneLease{Lease: lease}
	err = finish(context.WithoutCancel(ctx), "lease", unreleased, done, stderr, result, nil)
	if err == nil && done.err != nil && c.OncePer != "" {
		return &failure{exitUnreachable, fmt.Errorf("the command has succeeded, but the service may not know: it may be run "+
			"again in this period (%w)", done.err)}
	}
	return err
}

// findCommand returns the path of the command's program, and its name and arguments. The first -- is not part of them.
// before is the command line before the --.
func (p *program) findCommand(args []string, before string) (path string, _ []string, err error) {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return "", nil, usagef("the command is missing; give it after --, as in %s -- make", before)
	}
	pathList, _ := p.env("PATH")
	path, err = supervise.LookPath(args[0], pathList)
	return path, args, err
}

// separate sets Locks and Command, which are the NAME and the command, or with --lock all that stands after the first
// --: then the parser has taken the first word of the command for the NAME. args is the whole command line. before is
// an example of what stands before the --, for an error.
func (c *runCommand) separate(args []string) (before string, _ error) {
	if len(c.Locks) == 0 {
		if c.Name == "" {
			return "", usagef("the lock is missing; give its name, as in paddock run jobs:nightly -- make, or --lock for each " +
				"of several locks")
		}
		c.Locks = []string{c.Name}
		return "paddock run " + c.Name, refuseCommandAsName("run", args, c.Name, c.Command)
	}
	before = "paddock run --lock " + strings.Join(c.Locks, " --lock ")
	if c.Name == "" {
		return before, nil
	}
	i := slices.Index(args, "--")
	if i < 0 || len(args)-i-1 != 1+len(c.Command) {
		return "", usagef("unexpected %s: with --lock, give no NAME and write -- before the command, as in %s -- make",
			printable.Text(c.Name), before)
	}
	c.Command = args[i+1:]
	return before, nil
}

// refuseCommandAsName returns a usage error if nothing stands before the first --, so that the parser has taken the first
// word of the command for the NAME. args is the whole command line.
func refuseCommandAsName(command string, args []string, name string, rest []string) error {
	if i := slices.Index(args, "--"); i < 0 || len(args)-i-1 != 1+len(rest) {
		return nil
	}
	return usagef("NAME is missing: what stands after -- is the command. Give the lock's name before it, as in paddock %s jobs:nightly -- %s",
		command, printable.Text(strings.Join(append([]string{name}, rest...), " ")))
}

// options returns the wanted locks, and their lease with a margin in which the command can be stopped.
func (c *runCommand) options(stderr *supervise.AsyncStderr) ([]lock.Member, guard.Options, error) {
	members, o, err := c.leaseFlags.options(c.Locks)
	if err != nil {
		return nil, o, err
	}
	o.Holder, o.LeaseIDFile = cmp.Or(c.Holder, processHolder()), c.LeaseIDFile
	o.Retry, o.OnState = c.forGuard(), reportRisk("the lease of "+joined(namesOf(members)), stderr)
	if o.OncePer, err = c.closing(members); err != nil {
		return nil, o, err
	}
	o.Margin, err = margin(c.KillAfter, c.TTL)
	return members, o, err
}

// margin returns the time in which a command can be stopped before its lease or session of that TTL ends.
func margin(chosen *time.Duration, ttl time.Duration) (time.Duration, error) {
	if ttl < lock.MinTTL {
		return 0, usagef("--ttl is %v; give %v or more", ttl, lock.MinTTL)
	}
	longest := (ttl/3 - slack(ttl)).Truncate(time.Millisecond)
	killAfter := min(defaultKillAfter, longest)
	if chosen != nil {
		killAfter = *chosen
	}
	if killAfter > longest {
		return 0, usagef("--kill-after is %v; with a TTL of %v give 0s to %v, or a longer --ttl: the command must be "+
			"gone before the lease can end, and two thirds of the TTL are reserved for renewals", killAfter, ttl, longest)
	}
	return killAfter + slack(ttl), nil
}

// reportRisk returns a function that reports when what gets at risk, and when it is held again.
func reportRisk(what string, stderr *supervise.AsyncStderr) func(guard.State, error) {
	return func(s guard.State, err error) {
		switch s {
		case guard.AtRisk:
			stderr.Printf("%s is at risk; the command is stopped unless a renewal succeeds in time: %v", what, err)
		case guard.Held:
			stderr.Printf("%s is held again", what)
		}
	}
}

// slack is the part of the margin that the command does not get.
func slack(ttl time.Duration) time.Duration { return min(ttl/10, maxSlack) }

// acquire acquires the locks, unless a signal comes first. Then it gives up its places in the queues, or the lease.
func (c *runCommand) acquire(ctx context.Context, locks paddock.Service, members []lock.Member, o guard.Options,
	signals *supervise.Signals) (*guard.Lease, error) {
	return beforeSignal(ctx, signals, joined(namesOf(members))+" was acquired", func(ctx context.Context) (*guard.Lease, error) {
		return guard.AcquireAll(ctx, locks, members, o)
	})
}

// A releaser is a lease or a session that can be given back.
type releaser interface {
	supervise.Lease
	Release(context.Context) error
}

// beforeSignal returns what get returns, unless a signal comes first. Then it gives back what it may have got, and
// restores the default actions of signals, so that a second signal kills. done says what get is to do, for an error.
func beforeSignal[R releaser](ctx context.Context, signals *supervise.Signals, done string, get func(context.Context) (R, error)) (R, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ctx ends on some of the same signals
	defer cancel()
	var got R
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		got, err = get(ctx)
	}()
	s, stopped := signals.FirstBefore(over)
	if !stopped {
		return got, err
	}
	signals.Stop()
	cancel()
	<-over
	cause := fmt.Errorf("stopped by %s before %s", supervise.SignalName(s), done)
	if err == nil {
		if err = got.Release(ctx); err != nil {
			cause = fmt.Errorf("%w; what was granted meanwhile ends after its TTL: %w", cause, err)
		}
	}
	return *new(R), &failure{exitSignalled + int(s), cause}
}

// leaseHolderVariable is the variable with the holder of the lease or session that a command runs under. It is not
// PADDOCK_HOLDER, which names the holder of leases to come: one of a run in the command is of another process.
const leaseHolderVariable = "PADDOCK_LEASE_HOLDER"

// commandEnvironment returns the environment of the command: ours, and variables about the lease. It does not contain
// the lease_id, which would let every descendant end the lease.
func commandEnvironment(lease *guard.Lease, url string, more ...variable) []string {
	return environmentWith(append(append(leaseVariables(lease.Members()), more...),
		variable{leaseHolderVariable, lease.Holder()}, variable{"PADDOCK_URL", url}, variable{"PADDOCK_TASK", string(lease.Task())},
		variable{"PADDOCK_LEASE_ID", ""}, variable{"PADDOCK_EXPIRES_AT", ""})) // an inherited one is that of another lease
}

// environmentWith returns the environment of this process with these variables instead of its own. One without a value
// is left out.
func environmentWith(ours []variable) []string {
	env := slices.DeleteFunc(os.Environ(), func(line string) bool {
		return slices.ContainsFunc(ours, func(v variable) bool { return strings.HasPrefix(line, v.name+"=") })
	})
	for _, v := range ours {
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}

// finish releases the lease or closes the session, which is what. It prints unreleased if that fails. It returns the
// failure of the run: nil if the command ended with exit code 0 and the lease was held all the time. notStarted is why
// the command was not started, nil if it was.
func finish(ctx context.Context, what, unreleased string, lease releaser, stderr *supervise.AsyncStderr,
	result supervise.Result, notStarted error,
) error {
	ended := lease.Err()
	err := lease.Release(ctx)
	switch {
	case err == nil:
		ended = nil // the lease was held until now
	case errors.Is(err, lock.ErrLeaseLost), errors.Is(err, lock.ErrSessionLost):
		ended = err
	case result.Lost == nil:
		stderr.Printf("%s: %v", unreleased, err)
	}
	switch {
	case notStarted != nil:
		return explain(notStarted)
	case result.Lost != nil:
		return &failure{exitLeaseLost, fmt.Errorf("the %s was lost, so the command was stopped (%s): %w",
			what, result, explain(result.Lost))}
	case ended != nil:
		return &failure{exitLeaseLost, fmt.Errorf("the command has ended (%s), but the %s ended first: the work may "+
			"have overlapped with that of another holder: %w",
			result, what, explain(ended))}
	case result.ExitCode() != exitOK:
		return &failure{result.ExitCode(), errAlreadyReported}
	}
	return nil
}
