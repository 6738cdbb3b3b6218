package lock_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// commands are all commands, on a lock in a tree, with their traits.
var commands = map[string]struct {
	cmd    lock.Command
	traits lock.Traits
	inTree []string // the locks on which it is decided
}{
	"Acquire": {
		lock.Acquire{Locks: members(exclusiveLock("tree:a")), LeaseID: id(1), SessionID: sessionID, TTL: 3, Grace: 2},
		lock.Traits{Lease: id(1), Session: sessionID.Ref(), Grants: true, Length: 5}, []string{"tree", "tree:a"},
	},
	"Claim": {
		lock.Claim{Locks: []string{"tree:a"}, LeaseID: id(1), SessionID: sessionID},
		lock.Traits{Lease: id(1), Session: sessionID.Ref(), Queue: lock.Claims}, []string{"tree", "tree:a"},
	},
	"Leave": {
		lock.Leave{Locks: []string{"tree:a"}, LeaseID: id(1), SessionID: sessionID},
		lock.Traits{Lease: id(1), Session: sessionID.Ref(), Queue: lock.Leaves}, []string{"tree", "tree:a"},
	},
	"Renew": {
		lock.Renew{Locks: []string{"tree:a"}, LeaseID: id(1)}, lock.Traits{Lease: id(1), TellsEnd: true}, []string{"tree", "tree:a"},
	},
	"Release": {
		lock.Release{Locks: []string{"tree:a"}, LeaseID: id(1)}, lock.Traits{Lease: id(1)}, []string{"tree", "tree:a"},
	},
	"Revoke":        {lock.Revoke{Name: "tree:a"}, lock.Traits{ShowsQueue: true}, []string{"tree:a"}},
	"EndSession":    {lock.EndSession{Name: "tree:a"}, lock.Traits{}, []string{"tree:a"}},
	"Sweep":         {lock.Sweep{Locks: []string{"tree:a"}}, lock.Traits{NoAnswer: true}, []string{"tree:a"}},
	"BreakDeadlock": {lock.BreakDeadlock{Locks: []string{"tree:a"}, LeaseID: id(1)}, lock.Traits{}, []string{"tree:a"}},
	"NoteFreeze":    {lock.NoteFreeze{Freeze: lock.Freeze{Scope: "tree:a"}}, lock.Traits{}, []string{"tree:a"}},
	"ReportStale":   {lock.ReportStale{Name: "tree:a"}, lock.Traits{ReadsToken: true}, []string{"tree:a"}},
}

// TestEveryCommandHasItsTraits: each type that decides is in the table.
func TestEveryCommandHasItsTraits(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range regexp.MustCompile(`(?m)^func \(\w+ (\w+)\) Traits\(\)`).FindAllSubmatch(text, -1) {
			if found++; commands[string(method[1])].cmd == nil {
				t.Errorf("%s is not in the table", method[1])
			}
		}
	}
	if found != len(commands) {
		t.Errorf("found %d commands, want %d", found, len(commands))
	}
	for name, c := range commands {
		if got := c.cmd.Traits(); got != c.traits {
			t.Errorf("%s has %+v, want %+v", name, got, c.traits)
		}
		in, err := c.cmd.In(&lock.Policy{Trees: lock.Trees{"tree": {}}})
		if err != nil || !slices.Equal(in.Names(), c.inTree) {
			t.Errorf("%s is decided on %q, %v", name, in.Names(), err)
		}
	}
}

func TestTraitsOfAnAcquireThatWaits(t *testing.T) {
	t.Parallel()
	a := lock.Acquire{Locks: lock.One("a"), LeaseID: id(1), Wait: 1, GeneratedID: true}
	traits := a.Traits()
	if want := (lock.Traits{Lease: id(1), Queue: lock.Joins, Wait: 1, Grants: true, NewID: true}); traits != want {
		t.Errorf("got %+v, want %+v", traits, want)
	}
	if refs := traits.Refs(a.Names()); refs != nil {
		t.Errorf("no lease has had the ID, and %d end events are needed", len(refs))
	}
}
