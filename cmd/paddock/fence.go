package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/paddock-lock/paddock"
)

type fenceCommand struct {
	Install   fenceInstallCommand   `cmd:"" help:"Put paddock_fence into a database of yours, or bring it up to date there."`
	Uninstall fenceUninstallCommand `cmd:"" help:"Take it out again, and forget the tokens seen."`
	SQL       fenceSQLCommand       `cmd:"" name:"sql" help:"Print the SQL that does it, to be reviewed or run with psql."`
}

// Help says what the fence is for.
func (fenceCommand) Help() string {
	return `A lock alone does not stop a paused process from writing. paddock_fence(resource, token) does, called first in a transaction: ` +
		`it refuses a token lower than one that was seen, with SQLSTATE PF001. It goes into the database that holds the tables to guard, which need not be Paddock's.

    begin;
    select paddock_fence('accounts', 41);
    update accounts set balance = balance - 10 where id = 42;
    commit;`
}

type fenceInstallCommand struct {
	fencedDatabase
}

// Help shows how to use it.
func (fenceInstallCommand) Help() string {
	return `Again does no harm: the tokens seen stay. A role other than the one that installs needs select, insert and update on the table paddock_fences.

    paddock fence install --database-url postgres://owner@db.example/bank
    paddock fence install --database-url postgres://owner@db.example/bank --schema app`
}

// Run installs the fence and says where.
func (c *fenceInstallCommand) Run(ctx context.Context, p *program) error {
	return c.within(ctx, func(s *site) error {
		if err := s.run(ctx, paddock.InstallFence); err != nil {
			return err
		}
		done := "paddock_fence is installed in"
		if s.Installed {
			done = "paddock_fence was there already, and is now that of this release, in"
		}
		_, err := fmt.Fprintf(p.stdout, "%s %s.\n", done, s)
		return err
	})
}

type fenceUninstallCommand struct {
	fencedDatabase

	Yes bool `help:"Yes, forget the tokens seen and guard nothing any more."`
}

// Help says what it does.
func (fenceUninstallCommand) Help() string {
	return `Drops the table paddock_fences, the functions, and the triggers of paddock_fence_guard; nothing of yours. Stale writes are refused no more.

    paddock fence uninstall --database-url postgres://owner@db.example/bank --yes`
}

// Run uninstalls the fence and says what there was.
func (c *fenceUninstallCommand) Run(ctx context.Context, p *program) error {
	if !c.Yes {
		return usagef("this drops the table with the tokens seen, the functions, and the triggers that guard tables: " +
			"stale writes are refused no more; if that is meant, say it again with --yes")
	}
	return c.within(ctx, func(s *site) error {
		if err := s.run(ctx, paddock.UninstallFence); err != nil {
			return err
		}
		done := fmt.Sprintf("There was no paddock_fence in %s; nothing was dropped.", s)
		if s.Installed {
			done = fmt.Sprintf("Dropped paddock_fence from %s. It guarded %s, and has forgotten the tokens of %d resources.", s, s.guards(), s.Resources)
		}
		_, err := fmt.Fprintln(p.stdout, done)
		return err
	})
}

// guards returns the guarded tables in words.
func (s *site) guards() string {
	if len(s.Guarded) == 0 {
		return "no table"
	}
	return strings.Join(s.Guarded, ", ")
}

type fenceSQLCommand struct {
	Uninstall bool `help:"That of uninstall instead of that of install."`
}

// Help shows how to use it.
func (fenceSQLCommand) Help() string {
	return `It is just what install and uninstall run, as one transaction in the first schema of the search_path.

    paddock fence sql | psql -v ON_ERROR_STOP=1 postgres://owner@db.example/bank`
}

// Run prints the SQL.
func (c *fenceSQLCommand) Run(p *program) error {
	sql := paddock.InstallFence
	if c.Uninstall {
		sql = paddock.UninstallFence
	}
	_, err := io.WriteString(p.stdout, sql)
	return err
}
