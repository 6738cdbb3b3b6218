package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

func TestTreesAreDeclaredListedAndRemoved(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for range 2 {
		stdout, _ := d.expectExit(exitOK, "tree", "declare", "repo", "-o", "json")
		var tree api.Tree
		if err := json.Unmarshal([]byte(stdout), &tree); err != nil || tree.Root != "repo" || tree.DeclaredAt.IsZero() {
			t.Errorf("it prints %s, %v", stdout, err)
		}
	}
	stdout, _ := d.expectExit(exitOK, "tree", "declare", "jobs")
	if !strings.Contains(stdout, "TREE") || !strings.Contains(stdout, "jobs") {
		t.Errorf("it prints\n%s", stdout)
	}
	d.expectFailure(exitUsage, []string{"tree_overlaps", "repo:src is inside the tree repo"}, "tree", "declare", "repo:src")
	d.hold(lock.Acquire{Locks: lock.One("repo:src:a"), Holder: "h"})
	d.expectFailure(exitNotAcquired, []string{"tree_busy", "repo:src:a, in the tree repo, is held or waited for"}, "tree", "remove", "repo")
	for _, want := range []string{"", "The tree jobs was not declared.\n"} {
		if _, stderr := d.expectExit(exitOK, "tree", "remove", "jobs"); stderr != want {
			t.Errorf("it says %q, want %q", stderr, want)
		}
	}
	stdout, _ = d.expectExit(exitOK, "tree", "list", "-o", "json")
	var trees []api.Tree
	if err := json.Unmarshal([]byte(stdout), &trees); err != nil || len(trees) != 1 || trees[0].Root != "repo" {
		t.Errorf("the trees are %s, %v", stdout, err)
	}
}

func TestATreeThatIsNotDeclaredIsNotDrawn(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "h"})
	d.expectFailure(exitFailed, []string{"no tree jobs is declared", "paddock tree declare jobs", "paddock list --prefix jobs:"}, "list", "--tree", "jobs")
}

// TestATreeIsDrawn with its locks in the order of their levels: bytes would put repo:a-b between repo:a and repo:a:c.
func TestATreeIsDrawn(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectExit(exitOK, "tree", "declare", "repo")
	for _, name := range []string{"repo:a:c", "repo:a-b", "repo:idle", "repository"} {
		g := d.hold(lock.Acquire{Locks: lock.One(name), Holder: "of " + name})
		if name == "repo:idle" {
			d.expectExit(exitOK, "release", name, "--lease-id", wire.LeaseOf(g).LeaseID.String())
		}
	}
	d.enqueue(lock.Acquire{Locks: lock.One("repo:a"), Holder: "waiter"})
	stdout, _ := d.expectExit(exitOK, "list", "--tree", "repo")
	var drawn [][]string
	for line := range strings.Lines(stdout) {
		drawn = append(drawn, strings.Split(collapseSpaces(strings.TrimRight(line, "\n")), "  "))
	}
	want := []string{"repo", ":a", ":c", ":a-b"}
	if len(drawn) != len(want)+1 {
		t.Fatalf("it prints\n%s", stdout)
	}
	for i, name := range want {
		if row := drawn[i+1]; !slices.Contains(row, name) {
			t.Errorf("row %d is %q, want %s:\n%s", i+1, row, name, stdout)
		}
	}
	for _, words := range []string{"of repo:a:c", "of repo:a-b", "exclusive", "free", "held"} {
		if !strings.Contains(stdout, words) {
			t.Errorf("%q is missing in\n%s", words, stdout)
		}
	}
	if strings.Contains(stdout, "idle") || strings.Contains(stdout, "repository") {
		t.Errorf("it prints\n%s", stdout)
	}
}

func TestALockShowsWhatIsAboveAndBelow(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.expectExit(exitOK, "tree", "declare", "repo")
	d.hold(lock.Acquire{Locks: lock.One("repo:src"), Holder: "h"})
	d.enqueue(lock.Acquire{Locks: lock.One("repo:src:a"), Holder: "waiter"})
	above, _ := d.expectExit(exitOK, "get", "repo:src:a")
	below, _ := d.expectExit(exitOK, "get", "repo")
	queue, _ := d.expectExit(exitOK, "queue", "repo")
	for what, c := range map[string]struct{ text, title string }{"above": {above, "HELD ABOVE"}, "below": {below, "HELD BELOW"}} {
		if !strings.Contains(c.text, c.title) || !strings.Contains(collapseSpaces(c.text), "repo:src  h  exclusive") {
			t.Errorf("%s:\n%s", what, c.text)
		}
	}
	if queue = collapseSpaces(queue); !strings.Contains(queue, "waiter, for repo:src:a") || !regexp.MustCompile(`h \(token \d+\) at repo:src\n`).MatchString(queue) {
		t.Errorf("the queue is\n%s", queue)
	}
}
