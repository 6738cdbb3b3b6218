package shell_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/test/internal/tools"
)

// TestPsqlRunsThePrintedSQL runs it twice.
func TestPsqlRunsThePrintedSQL(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.EmptyURL(t)
	for _, args := range [][]string{{"fence", "sql"}, {"fence", "sql", "--uninstall"}} {
		sql := output(t, args...)
		for range 2 {
			if said, err := psql(t, databaseURL, sql); err != nil || said != "" {
				t.Errorf("%v: %v: %s", args, err, said)
			}
		}
	}
}

// TestPsqlWritesUnderATokenUntilANewerOneIsUsed writes to a fenced table from scripts.
func TestPsqlWritesUnderATokenUntilANewerOneIsUsed(t *testing.T) {
	t.Parallel()
	bank := pgtest.EmptyURL(t)
	output(t, "fence", "install", "--database-url", bank)
	if said, err := psql(t, bank, "create table accounts (id int primary key, balance int); "+
		"insert into accounts values (42, 100)"); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	withdraw := func(token, amount int) (string, error) {
		return psql(t, bank, fmt.Sprintf("begin; select paddock_fence('accounts', %d); "+
			"update accounts set balance = balance - %d where id = 42; commit;", token, amount))
	}
	for _, write := range []struct{ token, amount int }{{1, 10}, {2, 20}, {2, 30}} {
		if said, err := withdraw(write.token, write.amount); err != nil {
			t.Errorf("under token %d: %v: %s", write.token, err, said)
		}
	}
	if said, err := withdraw(1, 40); err == nil || !strings.Contains(said, "PF001") {
		t.Errorf("under the older token: %v: %s", err, said)
	}
	if balance, err := psql(t, bank, "select balance from accounts"); strings.TrimSpace(balance) != "40" || err != nil {
		t.Errorf("the balance is %s, %v", balance, err)
	}
}

// psql runs the SQL with psql, as from a file, and returns its output.
func psql(t *testing.T, databaseURL, sql string) (said string, err error) {
	t.Helper()
	program := tools.Path(t, "psql")
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose",
		"--tuples-only", "--no-align", "--dbname", databaseURL, "--file=-")
	cmd.Stdin = strings.NewReader(sql)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("psql: %w", err)
	}
	return string(out), err
}
