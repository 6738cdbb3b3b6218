package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

type ruleCommand struct {
	Set    ruleSetCommand    `cmd:"" help:"Set the rule of a lock or a prefix."`
	Remove ruleRemoveCommand `cmd:"" help:"Remove a rule."`
	List   ruleListCommand   `cmd:"" help:"List the rules."`
}

func (ruleCommand) Help() string {
	return `A rule bounds what may be asked of a lock, or of all locks below a prefix that ends with a colon. Of the rules
that cover a lock, that of the longest name or prefix applies, and no other.

    paddock rule set batch: --max-ttl 5m --max-hold 2h
    paddock rule set pools:gpus --capacity 5
    paddock rule list`
}

type ruleSetCommand struct {
	Scope string `arg:"" complete:"scope" help:"The lock's name, or a prefix of names that ends with a colon, such as batch:."`
	serviceFlags
	outputFlags

	MaxTTL    time.Duration `name:"max-ttl" unset:"that of the service" help:"Longest TTL."`
	MaxHold   time.Duration `unset:"no limit" help:"How long renewals can extend a lease at most."`
	MinGrace  time.Duration `default:"0s" help:"Shortest grace."`
	Capacity  int           `placeholder:"N" unset:"what the requests say" help:"Number of permits of each lock. Requests leave it out, or give the same."`
	MaxLeases int           `placeholder:"N" unset:"no limit" help:"How many leases of these locks one API key may have. It is counted every few seconds, so a key may exceed it for as long."`
}

func (ruleSetCommand) Help() string {
	return `Sets the rule on all replicas: once it returns, nothing is granted outside of it. It replaces a rule of the same
scope with all of its bounds. Leases from before stay, and are renewed within the rule. A greater capacity is granted to
waiters at once; with a lesser one no lease ends, and no permit is granted until enough are free.

    paddock rule set batch: --max-ttl 5m --max-hold 2h
    paddock rule set pools:gpus --capacity 5

The key needs the role admin for all of the locks.`
}

func (c *ruleSetCommand) Run(ctx context.Context, p *program) error {
	r := lock.Rule{
		Scope: lock.Scope(c.Scope), MaxTTL: c.MaxTTL, MaxHold: c.MaxHold, MinGrace: c.MinGrace, Capacity: c.Capacity, MaxLeases: c.MaxLeases,
	}
	if r == (lock.Rule{Scope: r.Scope}) {
		return usagef("the rule has no bound; give one or more of --max-ttl, --max-hold, --min-grace, --capacity and --max-leases")
	}
	r, err := r.Resolve()
	if err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	set, err := locks.SetRule(ctx, r)
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, output{wire: wire.RuleOf(set), names: []string{string(set.Scope)}, table: func(s *table) { s.rules([]lock.Rule{set}) }})
}

type ruleRemoveCommand struct {
	Scope string `arg:"" complete:"rule" help:"The scope of the rule, as it was given to paddock rule set."`
	serviceFlags
}

func (ruleRemoveCommand) Help() string {
	return `Removes a rule: the one of the next shorter prefix applies then. If there is none it says so, and succeeds.

    paddock rule remove batch:`
}

func (c *ruleRemoveCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	scope := lock.Scope(c.Scope)
	rules, err := locks.Rules(ctx) // the answer to the removal does not tell: it may be a repeated one
	if err == nil {
		err = locks.RemoveRule(ctx, scope)
	}
	if err == nil && !slices.ContainsFunc(rules, func(r lock.Rule) bool { return r.Scope == scope }) {
		fmt.Fprintf(p.stderr, "%s had no rule.\n", printable.Text(c.Scope))
	}
	return explainUnlessStopped(ctx, err)
}

type ruleListCommand struct {
	serviceFlags
	retryFlags
	outputFlags
}

func (ruleListCommand) Help() string {
	return `Prints the rules, ordered by scope.

    paddock rule list`
}

func (c *ruleListCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, locks.Rules)
	if err != nil {
		return err
	}
	scopes := namesIn(found, func(r lock.Rule) string { return string(r.Scope) })
	return p.print(c.Output, output{wire: wire.RuleListOf(found).Rules, names: scopes, empty: "No rules found.", table: func(s *table) { s.rules(found) }})
}

// rules adds the rules.
func (t *table) rules(all []lock.Rule) {
	length := func(d time.Duration) string {
		if d == 0 {
			return none
		}
		return d.String()
	}
	count := func(n int) string {
		if n == 0 {
			return none
		}
		return strconv.Itoa(n)
	}
	t.head("SCOPE", "MAX TTL", "MAX HOLD", "MIN GRACE", "CAPACITY", "MAX LEASES", "BY", "SET")
	for _, r := range all {
		t.row(string(r.Scope), length(r.MaxTTL), length(r.MaxHold), length(r.MinGrace), count(r.Capacity), count(r.MaxLeases),
			cmp.Or(r.SetBy, none), local(r.SetAt))
	}
}
