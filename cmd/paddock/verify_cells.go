package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

// nameIn returns a prefix of names for this run, which begins with another one.
func (*verifyCommand) nameIn(prefix string) string { return prefix + ":" + uuid.NewString()[:8] }

// spread chooses a group of locks in each cell that takes groups and is not away, if the service has several. The cell of the
// group of --prefix is the only one that is used if the API key covers no others.
func (v *verification) spread(ctx context.Context) error {
	var known []paddock.Cell
	r := v.replicas[0]
	err := v.withTimeout(ctx, callTimeout, func(ctx context.Context) (err error) {
		known, err = r.Locks.(*client.Client).Cells(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot read the cells of the service at %s: %w", r.Via, explain(err))
	}
	group, rest, _ := strings.Cut(v.Prefix, ":")
	var takes []placement.Cell
	var used []string // or away
	for _, c := range known {
		if v.cells = append(v.cells, c.Name); !c.Takes {
			continue
		}
		if takes = append(takes, placement.Cell{Name: c.Name, Position: c.Position, Takes: true}); c.Away != "" {
			used = append(used, c.Name)
		}
	}
	used = append(used, placement.Home(group, takes))
	for n := 2; len(used) < len(takes); n++ {
		another := fmt.Sprintf("%s-%d", group, n)
		home := placement.Home(another, takes)
		if slices.Contains(used, home) {
			continue
		}
		name := v.nameIn(strings.TrimSuffix(another+":"+rest, ":"))
		err := v.withTimeout(ctx, callTimeout, func(ctx context.Context) error { return v.probe(ctx, r.Locks, name) })
		if errors.Is(err, lock.ErrNameNotAllowed) {
			v.names, v.onlyGroup = v.names[:1], true
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot verify the service at %s: %w", r.Via, explain(err))
		}
		used, v.names = append(used, home), append(v.names, name)
	}
	return nil
}

// inCells returns a line about the cells of a service that has several.
func (v *verification) inCells() string {
	switch {
	case len(v.cells) == 0:
		return ""
	case v.onlyGroup:
		return "The API key covers no group in another cell: only one of the cells " + strings.Join(v.cells, ", ") + " is exercised.\n"
	}
	return fmt.Sprintf("They are in %d of the cells %s.\n", len(v.names), strings.Join(v.cells, ", "))
}
