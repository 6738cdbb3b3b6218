package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

type treeCommand struct {
	Declare treeDeclareCommand `cmd:"" help:"Declare a tree."`
	Remove  treeRemoveCommand  `cmd:"" help:"Remove a tree."`
	List    treeListCommand    `cmd:"" help:"List the trees."`
}

func (treeCommand) Help() string {
	return `In a tree a lock covers all locks below it. A colon separates levels: in the tree of repo an exclusive lease of
repo:src excludes every lease of repo, of repo:src and of repo:src:…, and shared leases go together at all levels.
Locks outside of trees are independent of each other, whatever their names.

    paddock tree declare repo
    paddock run repo:src:a -- make test        # and elsewhere, at the same time:
    paddock run repo:src:b -- make test
    paddock run repo:src --wait 5m -- git gc   # waits for both, and later requests below repo:src wait behind it
    paddock list --tree repo`
}

type treeDeclareCommand struct {
	Root string `arg:"" help:"The name of the tree's highest lock, such as repo."`
	serviceFlags
	outputFlags
}

func (treeDeclareCommand) Help() string {
	return `Declares the tree for all replicas at once, while all of its locks are free. Declaring it again changes nothing.
Trees do not overlap.

    paddock tree declare repo`
}

func (c *treeDeclareCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	declared, err := locks.DeclareTree(ctx, c.Root)
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, output{wire: wire.TreeOf(declared), names: []string{declared.Root}, table: func(s *table) {
		s.field("TREE", declared.Root)
		s.field("DECLARED", local(declared.DeclaredAt))
	}})
}

type treeRemoveCommand struct {
	Root string `arg:"" complete:"tree" help:"The root of the tree."`
	serviceFlags
}

func (treeRemoveCommand) Help() string {
	return `Makes the locks of the tree independent of each other, while all of them are free. Removing it again changes
nothing, and says so.

    paddock tree remove repo`
}

func (c *treeRemoveCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	declared, err := locks.Trees(ctx) // the answer to the removal does not tell: it may be a repeated one
	if err == nil {
		err = locks.RemoveTree(ctx, c.Root)
	}
	if err == nil && !slices.ContainsFunc(declared, func(t lock.Tree) bool { return t.Root == c.Root }) {
		fmt.Fprintf(p.stderr, "The tree %s was not declared.\n", c.Root)
	}
	return explainUnlessStopped(ctx, err)
}

type treeListCommand struct {
	serviceFlags
	retryFlags
	outputFlags
}

func (treeListCommand) Help() string {
	return `Prints the declared trees, ordered by root. To see what is held in one: paddock list --tree ROOT.

    paddock tree list`
}

func (c *treeListCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, locks.Trees)
	if err != nil {
		return err
	}
	roots := namesIn(found, func(t lock.Tree) string { return t.Root })
	return p.print(c.Output, output{wire: wire.MapSlice(found, wire.TreeOf), names: roots, empty: "No trees found.", table: func(s *table) {
		s.head("TREE", "DECLARED")
		for _, t := range found {
			s.row(t.Root, local(t.DeclaredAt))
		}
	}})
}

// listTree prints the locks of a tree that are held or waited for, each below the ones above it.
func (c *listCommand) listTree(ctx context.Context, p *program) error {
	if c.Prefix+c.Contains+c.State+c.Holder+c.Sort != "" || c.Contended || c.Limit > 0 {
		return usagef("--tree cannot be combined with flags that select, sort or limit locks")
	}
	if err := lock.CheckRoot(c.Tree); err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, func(ctx context.Context) ([]lock.Lock, error) { return c.readTree(ctx, p, locks) })
	if err != nil {
		return err
	}
	var used []lock.Lock
	for _, l := range found {
		if l.Name == c.Tree || len(l.Leases)+len(l.Below)+l.Waiters+l.WaitersBelow > 0 {
			used = append(used, l)
		}
	}
	slices.SortFunc(used, func(a, b lock.Lock) int {
		return slices.Compare(strings.Split(a.Name, ":"), strings.Split(b.Name, ":"))
	})
	return p.print(c.Output, showTree(c.Tree, used))
}

// readTree returns the root and the known locks below it. It fails if there is no such tree: then its locks exclude each
// other in no way that a drawing could show.
func (c *listCommand) readTree(ctx context.Context, p *program, locks paddock.Service) ([]lock.Lock, error) {
	declared, err := locks.Trees(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(declared, func(t lock.Tree) bool { return t.Root == c.Tree }) {
		return nil, fmt.Errorf("no tree %s is declared (see paddock tree list); to declare it run paddock tree declare %s, or "+
			"run paddock list --prefix %s: for the locks below it, which are independent", c.Tree, c.Tree, c.Tree)
	}
	root, err := locks.Lock(ctx, c.Tree)
	if err != nil {
		return nil, err
	}
	below, err := c.collect(ctx, p, locks, paddock.LockQuery{Prefix: c.Tree + ":"})
	return append([]lock.Lock{root}, below...), err
}

// showTree returns the output for the locks of a tree, which are in the order of their levels.
func showTree(root string, locks []lock.Lock) output {
	names := namesIn(locks, func(l lock.Lock) string { return l.Name })
	return output{wire: wire.MapSlice(locks, wire.LockOf), names: names, table: func(s *table) {
		s.head("LOCK", "STATE", "MODE", "TOKEN", "HOLDER", "LEFT", "BELOW", "WAITING")
		for _, l := range locks {
			name := l.Name
			if level := strings.Count(strings.TrimPrefix(name, root), ":"); level > 0 {
				name = strings.Repeat("  ", level) + name[strings.LastIndex(name, ":"):]
			}
			mode, holder, left := none, none, none
			if len(l.Leases) > 0 {
				h := l.Leases[0]
				mode, holder, left = h.Mode.String(), h.Holder, remaining(h)
				if n := len(l.Leases) - 1; n > 0 {
					holder += fmt.Sprintf(" and %d more", n)
				}
			}
			s.row(name, string(l.State), mode, token(l.Token), holder, left, strconv.Itoa(len(l.Below)), strconv.Itoa(l.Waiters))
		}
	}}
}

// elsewhere adds the leases of locks above or below, under the title, if there are any.
func (t *table) elsewhere(title string, leases []lock.LeaseInfo) {
	if len(leases) == 0 {
		return
	}
	t.head(title, "HOLDER", "MODE", "TOKEN", "EXPIRES", "LEFT")
	for _, h := range leases {
		t.row(cmp.Or(h.Name, none), h.Holder, h.Mode.String(), token(h.Token), local(h.ExpiresAt), remaining(h))
	}
}
