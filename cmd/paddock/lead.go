package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/supervise"
	"github.com/paddock-lock/paddock/lock"
)

type leadCommand struct {
	Name    string   `arg:"" complete:"lock" help:"The name of the election, which is that of a lock, such as leader:billing."`
	Command []string `arg:"" optional:"" unset:"none; it is required" passthrough:"partial" help:"The command and its arguments, preferably after --."`
	serviceFlags

	Value     string         `placeholder:"TEXT" unset:"the holder" help:"What the leader publishes, such as its address."`
	Holder    string         `placeholder:"TEXT" unset:"USER@HOST:PID" variable:"PADDOCK_HOLDER" help:"Name of this candidate, a text for people."`
	TTL       time.Duration  `name:"ttl" default:"15s" help:"How long after a leader's death the next one is elected."`
	Grace     time.Duration  `default:"0s" help:"How much longer to wait before another candidate is elected."`
	KillAfter *time.Duration `placeholder:"DURATION" unset:"5s, or as much as the TTL allows" help:"How long the command may take to end after SIGTERM before it is killed; 0s kills it at once."`
}

func (leadCommand) Help() string {
	return `paddock lead [flags] NAME -- CMD ARGS…

Waits until it is elected, runs the command while it leads, and stops the command before another candidate can be
elected. If the leadership is lost, it waits to be elected again. If the command ends by itself, or a signal ends it,
paddock lead resigns and ends with the exit code of the command: let systemd or Kubernetes restart it, as a candidate.

    paddock lead leader:billing --value http://10.0.0.1:7000 -- /usr/local/bin/billing

Candidates are elected in the order in which they came. The command gets the variables of paddock run, and
PADDOCK_LEADER_VALUE. PADDOCK_FENCING_TOKEN grows with each leader: send it with every write that only a leader may
make. Then a leader that was paused, and does not know that its term is over, is refused where the write lands.

paddock leader leader:billing shows who leads. The value is in the lock's metadata, so it can be read with curl, too.
Signals, and processes that the command leaves running, are handled as paddock run does.

Exit codes: that of the command, or 128+n if signal n ended it, or the wait. Also 64: wrong command line, or an invalid
request. 70: internal error of the service. 75: calls wait for each other in a deadlock. 76: the leadership was lost
while a signal was ending the command, or the command had ended too late. 77: not allowed. 126: the command cannot be
executed. 127: it was not found. 1: another error.`
}

// Run campaigns and runs the command until the command ends by itself, or because of a signal.
func (c *leadCommand) Run(ctx context.Context, p *program) error {
	stderr := supervise.NewAsyncStderr(p.stderr)
	defer stderr.Close()
	if err := refuseCommandAsName("lead", p.args, c.Name, c.Command); err != nil {
		return err
	}
	reserved, err := margin(c.KillAfter, c.TTL)
	if err != nil {
		return err
	}
	locks, err := c.client()
	if err != nil {
		return err
	}
	path, args, err := p.findCommand(c.Command, "paddock lead "+c.Name)
	if err != nil {
		return err
	}
	holder := cmp.Or(c.Holder, processHolder())
	value := cmp.Or(c.Value, holder)
	election := guard.NewElection(locks, c.Name, guard.Options{
		Holder: holder, TTL: c.TTL, Grace: c.Grace, Margin: reserved, OnRetry: p.logRetries(),
		OnState: reportRisk("the leadership of "+c.Name, stderr),
	})
	signals := supervise.Listen()
	defer signals.Stop()
	for {
		term, err := beforeSignal(ctx, signals, "this candidate was elected", func(ctx context.Context) (*guard.Term, error) {
			t, err := election.Campaign(ctx, value)
			return t, explain(err)
		})
		if err != nil {
			return err
		}
		stderr.Printf("leading %s, with the token %d", c.Name, term.Token())
		command := &supervise.Command{
			Path: path, Args: args, Env: commandEnvironment(term.Lease, c.URL, variable{"PADDOCK_LEADER_VALUE", value}),
			Lease: term, KillAfter: reserved - slack(c.TTL), Slack: slack(c.TTL), Signals: signals, Stderr: stderr,
		}
		result, err := command.Run()
		unreleased := "this leader could not resign; the next one is elected when its lease ends"
		err = finish(context.WithoutCancel(ctx), "leadership", unreleased, term, stderr, result, err)
		if result.Lost == nil || result.Asked {
			return err
		}
		stderr.Printf("%v", err)
		stderr.Printf("waiting to be elected again")
	}
}

type leaderCommand struct {
	Name string `arg:"" complete:"lock" help:"The name of the election."`
	serviceFlags
	retryFlags
	outputFlags

	Follow bool `help:"Print each change of the leader or its value, until it is interrupted. With -o json each line is a JSON object."`
}

func (leaderCommand) Help() string {
	return `Prints who leads: the holder, the value, the fencing token, and since when. By the time you read it, another one may
lead.

    paddock leader leader:billing
    paddock leader leader:billing -o json | jq -r .leader.value
    paddock leader leader:billing --follow

Exit code 75 means that nobody leads now. With --follow that is a line, too, with a dash for each value.`
}

// A shownLeader is the JSON of an election. Leader is nil if nobody leads.
type shownLeader struct {
	Name   string      `json:"name"`
	Leader *leaderJSON `json:"leader"`
}

type leaderJSON struct {
	Holder string    `json:"holder"`
	Value  string    `json:"value"`
	Token  int64     `json:"fencing_token"`
	Since  time.Time `json:"since"`
}

// Run prints the leader, once or at each change.
func (c *leaderCommand) Run(ctx context.Context, p *program) error {
	if err := lock.CheckName(c.Name); err != nil {
		return explain(err)
	}
	if c.Follow {
		return c.follow(ctx, p)
	}
	locks, err := c.clientWithTimeout(attemptTimeout)
	if err != nil {
		return err
	}
	election := guard.NewElection(locks, c.Name, guard.Options{})
	leader, err := read(ctx, p, c.retryFlags, election.Leader)
	if err != nil {
		return err
	}
	if leader == nil && isTable(c.Output) {
		return &failure{exitNotAcquired, fmt.Errorf("nobody leads %s now", c.Name)}
	}
	err = p.print(c.Output, output{wire: c.shown(leader), names: holdersOf(leader), table: func(t *table) {
		t.head("HOLDER", "VALUE", "TOKEN", "SINCE")
		t.row(leader.Holder, cmp.Or(leader.Value, none), token(leader.Token), local(leader.Since))
	}})
	if err == nil && leader == nil {
		err = &failure{exitNotAcquired, errAlreadyReported}
	}
	return err
}

func (c *leaderCommand) shown(l *guard.Leader) shownLeader {
	s := shownLeader{Name: c.Name}
	if l != nil {
		s.Leader = &leaderJSON{l.Holder, l.Value, int64(l.Token), l.Since}
	}
	return s
}

// follow prints each change until ctx ends.
func (c *leaderCommand) follow(ctx context.Context, p *program) error {
	locks, err := c.client()
	if err != nil {
		return err
	}
	out := p.stream(c.Output, column{"SINCE", instantWidth}, column{"TOKEN", 8}, column{"HOLDER", 20}, column{"VALUE", 20})
	if err := out.begin(); err != nil {
		return err
	}
	for leader, err := range guard.NewElection(locks, c.Name, guard.Options{}).Observe(ctx) {
		if err != nil {
			if !mayPass(err) {
				return explain(err)
			}
			p.log.Warn(callFailed, "error", err)
			continue
		}
		if err := c.printChange(out, leader); err != nil {
			return err
		}
	}
	return nil
}

func (c *leaderCommand) printChange(out *stream, l *guard.Leader) error {
	if l == nil {
		return out.print(c.shown(l), none, none, none, none, none)
	}
	return out.print(c.shown(l), l.Holder, local(l.Since), token(l.Token), l.Holder, cmp.Or(l.Value, none))
}

// holdersOf returns the holder of the election, or none if nobody leads.
func holdersOf(l *guard.Leader) []string {
	if l == nil {
		return nil
	}
	return []string{l.Holder}
}
