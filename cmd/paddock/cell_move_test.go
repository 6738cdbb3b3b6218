package main

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// TestGroupsMoveWhileTheServiceGoesOn by each command.
func TestGroupsMoveWhileTheServiceGoesOn(t *testing.T) {
	t.Parallel()
	cells := "main=" + pgtest.EmptyURL(t) + ",spare=" + pgtest.EmptyURL(t)
	env := map[string]string{"PADDOCK_CELL": cells, "DATABASE_URL": ""}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"cell", "pin", "spare", "billing"}, exitFailed, "run paddock migrate up with all cells first"},
		{[]string{"migrate", "up"}, exitOK, "Registered as cells: main, spare."},
		{[]string{"cell", "pin", "spare", "billing:eu"}, exitUsage, `"billing:eu" is no group`},
		{[]string{"cell", "pin", "third", "billing"}, exitFailed, `there is no cell "third"`},
		{[]string{"cell", "pin", "--cell", "", "spare", "billing"}, exitUsage, "--cell"},
	} {
		code, out, stderr := call(t, env, c.args...)
		if (code == exitOK) != (c.code == exitOK) || code == exitUsage != (c.code == exitUsage) || !strings.Contains(out+stderr, c.want) {
			t.Errorf("%q ended with %d: %s%s", c.args, code, out, stderr)
		}
	}
	if code, _, stderr := call(t, map[string]string{"DATABASE_URL": ""}, "cell", "drain", "main"); code != exitUsage || !strings.Contains(stderr, "give --cell") {
		t.Errorf("without cells drain ended with %d: %s", code, stderr)
	}
	p := start(t, "serve", "--listen", "127.0.0.1:0", "--cell", cells)
	locks := replica.Connect(t, client.Options{BaseURL: "http://" + p.Stderr.Await(t, `"msg":"listening","address":"([^"]+)"`)})
	group := placement.Group(homeOf(t, "main", placement.Cell{Name: "main", Takes: true}, placement.Cell{Name: "spare", Position: 1, Takes: true}))
	a := lock.Acquire{Locks: lock.One(group + ":x"), Holder: "me", LeaseID: lock.LeaseID(uuid.New())}
	if _, err := locks.Acquire(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"pin spare " + group, "In the cell spare from now on: " + group + "."},
		{"unpin " + group, "At home, by the hash of the name: " + group + "."},
		{"drain main", "The cell main has no groups, and takes none."},
		{"fill main", "The cell main has its part of the groups."},
	} {
		code, out, stderr := call(t, env, append([]string{"cell"}, strings.Fields(c.args)...)...)
		if code != exitOK || out != c.want+"\n" {
			t.Fatalf("paddock cell %s ended with %d: %s%s", c.args, code, out, stderr)
		}
		if _, err := locks.Renew(t.Context(), lock.Renew{Locks: a.Names(), LeaseID: a.LeaseID}); err != nil {
			t.Errorf("after %s the lease is not renewed: %v", c.args, err)
		}
	}
}
