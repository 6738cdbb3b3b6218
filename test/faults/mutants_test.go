package faults_test

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/verify"
)

// A mutant is Paddock with one comparison or rule broken, by the patch in mutants/ with its name.
type mutant struct {
	name string
	mode mode   // the use of a trial in which the checker must find it
	test string // instead of a trial: the package and the name of the test that must fail
}

// mutants are those of TestMutantsAreFound. The mutants noEpochCheck and joinsFirst have tests of their own.
var mutants = []mutant{
	{name: "a commit overwrites changed rows"},
	{name: "a commit writes locks of the same transaction"},
	{name: "a connection keeps tokens for later"},
	{name: "events are committed without a mark"},
	{name: "a renewal revives an expired lease"},
	{name: "promotion ignores readers"},
	{name: "several permits are counted as one"},
	{name: "commits are not durable", mode: crashed},
	{name: "the queue is last in first out", mode: neverCancelled},
	{name: "a fenced write ignores its token"},
	{name: "an operation is written again"},
	{name: "a release is answered but not written"},
	{name: "a retried acquire grants a second lease"},
	{name: "the tail of events drops one"},
	{name: "readers pass open transactions"},
	{name: "the cursor after a page is one too far"},
	{name: "a streamed event has the id of the previous one"},
	{name: "a reconnected stream starts at the end"},
	{name: "the epoch check ignores tokens and events", mode: restored},
	{name: "a revocation skips the grace"},
	{name: "a place ends with its connection", mode: cutOff},
	{name: "an expiry forgets the grace"},
	{name: "a lease outlives its session"},
	{name: "a session is renewed after its end"},
	{name: "a heartbeat is answered but not written"},
	{name: "deadlocks are not broken", mode: inCircles},
	{name: "a set is granted in part"},
	{name: "a set waits while it holds a lock"},
	{name: "a set is overtaken by the waiters behind it", mode: neverCancelled},
	{name: "a renewal of a set is written at one lock"},
	{name: "a release of a set ends one lease"},
	{name: "a revocation ends one lease of a set"},
	{name: "an acquire in a tree asks for nothing above", mode: inTrees},
	{name: "an intention does not conflict with an exclusive lease", mode: inTrees},
	{name: "a freeze is not read", mode: ruled},
	{name: "a lease exceeds the TTL of its rule", mode: ruled},
	{name: "a suspect lease expires"},
	{name: "a closed lock is granted"},
	{name: "a waiter below passes one above", mode: neverCancelled},
	{name: "an epoch gives no lease its TTL again", mode: inEpochs},
	{name: "an epoch gives no session its TTL again", mode: inEpochs},
	{name: "an epoch revives what was over", mode: inEpochs},
	{name: "tokens go on in a new epoch", mode: inEpochs},
	{name: "a group that is gone is decided about", mode: moving},
	{name: "a group that leaves is decided about", mode: moving},
	{name: "what has moved is listed twice", mode: moving},

	// What a commit compares with what was decided on matters in rare situations, which a test of the store brings about.
	{name: "a commit does not compare xmin", test: "store/internal/row TestASwapProvesWhatWasRead"},
	{name: "a commit does not compare the name", test: "store/internal/row TestVacuumFullIsHarmless"},
	{name: "a commit does not compare the epoch", test: "store/internal/row TestASwapProvesWhatWasRead"},
	{name: "a commit does not compare the pause of grants", test: "store/internal/row TestASwapProvesWhatWasRead"},
	{name: "a commit does not compare the server", test: "store/internal/row TestASwapProvesWhatWasRead"},
	{name: "a commit does not compare the policy", test: "store/internal/engine TestAChangeOfThePolicyUndoesADecisionInFlight"},
	{name: "the capacity of a rule is that of the request", test: "lock TestRules"},
	{name: "a commit does not compare the longest lease", test: "store/internal/row TestASwapProvesWhatWasRead"},
	{name: "a commit does not require the quorum", test: "store/internal/row TestASwapProvesWhatWasRead"},
	{name: "a commit does not compare the end of a session",
		test: "store/internal/row TestASwapIsUndoneUnlessItsSessionsAreOpen"},
	{name: "an acquire does not rely on its session", test: "store TestNothingIsGrantedInASessionAfterItsEnd"},
	{name: "an epoch hides that sessions may have lost leases", test: "store/internal/epoch TestSessionsAreMovedToTheNewClock"},
	{name: "an epoch knows the time of another clock", test: "store/internal/epoch TestLeasesOutliveASecondChangeOfTheClock"},
	{name: "an epoch forgets places", test: "store/internal/epoch TestWaitersAreMovedToTheNewClock"},
	{name: "an epoch leaves unclaimed grants", test: "store/internal/epoch TestLeasesAreMovedToTheNewClock"},
	{name: "a decision is committed before its time", test: "store/internal/row TestASwapProvesWhatWasRead"},
	{name: "a decision is committed at any later time", test: "store/internal/row TestASwapProvesWhatWasRead"},
	{name: "a decision outlives the wait for a row", test: "store/internal/row TestASwapThatWaitsPastTheEndFails"},
	{name: "readers share a token that has ended",
		test: "store TestAReaderThatWaitsPastTheEndOfTheOthersGetsANewToken"},
	{name: "an ended lease is granted again", test: "store/internal/row TestALeaseThatHasEndedIsNotUsedAgain"},
	{name: "a lease is lost when another one is granted", test: "store/internal/row TestALeaseIsInTheRowOfItsLock"},
	{name: "a lease has the token of a later one", test: "store/internal/row TestALeaseIsInTheRowOfItsLock"},
	{name: "heartbeats of other replicas are not read",
		test: "store/internal/engine TestAReplicaThatMayBeDeadIsReadAgain"},
	{name: "a call is refused from the cache", test: "store/internal/engine TestWhatAnotherReplicaDidIsSeen"},
	{name: "a lock that changes all the time is not locked",
		test: "store/internal/engine TestALockThatKeepsChangingIsLocked"},
	{name: "parts are read at another version", test: "store/internal/row TestPartsOfAnotherVersionAreNotMixedIn"},
	{name: "readers trust the sequence's last value", test: "store/internal/eventlog TestSequenceIsNoBound"},
	{name: "the end of a session has an effect before it is recorded",
		test: "store/internal/engine TestNothingIsDecidedInASessionBeforeItsEndIsRecorded"},
	{name: "the end of a session is recorded without its row",
		test: "store TestHeartbeatsAndTakeoversExcludeEachOther"},
	{name: "a heartbeat is decided before it has the row", test: "store TestAHeartbeatThatWaitsPastTheEndIsRefused"},
	{name: "a withdrawn grant promotes no waiter", test: "lock TestDisconnectWithAGeneratedLeaseID"},
	{name: "a move gives no lease its TTL again", test: "store/internal/cells TestALeaseHasItsWholeTTLAgainInTheOtherCell"},
	{name: "a move gives a lease another hour", test: "store/internal/cells TestALeaseHasItsWholeTTLAgainInTheOtherCell"},
	{name: "tokens go on after a move", test: "store/internal/cells TestEverythingOfAGroupMoves"},
	{name: "a move does not wait for heartbeats",
		test: "store/internal/cells TestNoHeartbeatIsDecidedWhileAMoveReadsTheClock"},
	{name: "a move forgets places", test: "store/internal/cells TestWaitersKeepTheirOrder"},
	{name: "a move revives an ended session", test: "store/internal/cells TestWhatWasOverStaysOver"},
	{name: "a move that was given up goes on", test: "store/internal/cells TestAMoveThatWasGivenUpGoesOnNoMore"},
	{name: "a move tears a set", test: "store/internal/cells TestSetsOfOtherGroupsStopAMove"},
	{name: "the rest of a set promotes no waiter", test: "lock TestTheRestOfASetIsRemovedAndUnblocksWaiters"},
}

// These are found by withoutEpochCheck and findJoinsFirst.
var (
	noEpochCheck = mutant{name: "a replaced database is not noticed"}
	joinsFirst   = mutant{name: "joins go among renewals"}
)

// patch returns the path of the mutant's patch.
func (m mutant) patch() string {
	return filepath.Join("mutants", strings.NewReplacer(" ", "-", "'", "").Replace(m.name)+".patch")
}

var patchedFile = regexp.MustCompile(`(?m)^\+\+\+ b/(.*)$`)

// overlay applies the patch to a copy of its file, and returns the flag of the go command that compiles the copy.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(m.patch())
	if err != nil {
		t.Fatal(err)
	}
	match := patchedFile.FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s patches no file", m.patch())
	}
	file, err := filepath.Abs(filepath.Join("../..", string(match[1])))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o := newOverlay(t.TempDir())
	o.replace[file] = filepath.Join(o.dir, string(match[1]))
	if err := os.MkdirAll(filepath.Dir(o.replace[file]), 0o700); err != nil {
		t.Fatal(err)
	}
	written(t, o.dir, string(match[1]), source)
	apply := exec.Command("git", "apply", "-")
	apply.Dir, apply.Stdin = o.dir, strings.NewReader(string(text))
	if output, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("update %s: %v\n%s", m.patch(), err, output)
	}
	return o.flag(t)
}

// build returns the path of the mutant's program.
func (m mutant) build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "paddock")
	if err := compile(path, false, m.overlay(t)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEachPatchApplies checks that each patch still fits the product, and that there is a mutant for each.
func TestEachPatchApplies(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, m := range append([]mutant{noEpochCheck, joinsFirst}, mutants...) {
		t.Run(m.name, func(t *testing.T) { m.overlay(t) })
		named[m.patch()] = true
	}
	patches, err := fs.Glob(os.DirFS("."), "mutants/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range patches {
		if !named[p] {
			t.Errorf("no mutant has %s", p)
		}
	}
}

// roundsToFind is how many rounds may be needed to find a mutant. Most need one or two; a mutant that only a crash in
// a lull shows has needed 14 on a machine with ten times the work that it can do.
const roundsToFind = 100

// TestMutantsAreFound proves, in the long form, that the tests can fail: the checker must find each mutant under a use
// that Paddock itself passes in TestPaddockPassesTrials, or the named test must fail.
func TestMutantsAreFound(t *testing.T) {
	t.Parallel()
	if !*flagLong {
		return
	}
	a := newTrialPool(t)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if m.test != "" {
				m.failTest(t)
				return
			}
			x := a.trial(t, m.build(t), m.mode)
			for round := range roundsToFind {
				x.perRound = callsPerSearch
				if round == 0 {
					x.perRound = callsOfFirstRound
				}
				report := x.round(round)
				if x.missing != nil {
					t.Logf("found after %d calls: %v", x.calls, x.missing)
					return
				}
				if !report.OK() {
					t.Logf("found after %d calls by %s", x.calls, summarize(report))
					return
				}
			}
			t.Errorf("the checker found nothing in %d calls", x.calls)
		})
	}
}

// failTest runs the mutant's test, which must fail or hang.
func (m mutant) failTest(t *testing.T) {
	t.Helper()
	folder, test, _ := strings.Cut(m.test, " ")
	run := exec.CommandContext(t.Context(), "go", "test", "-C", "../..", "-vet=off", "-count=1", "-timeout=3m",
		m.overlay(t), "-run=^"+test+"$", "./"+folder)
	output, err := run.CombinedOutput()
	if !regexp.MustCompile(`(--- FAIL: |running tests:\s+)` + test + ` `).Match(output) {
		t.Errorf("%s does not fail: %v\n%s", m.test, err, output)
	}
}

// flagRounds is how many rounds Paddock itself must pass.
var flagRounds = repeats{
	flag.Int("faults.rounds", 0, "rounds of each trial in TestPaddockPassesTrials; 0: 1, or 10 in the long form"),
	1, 10}

// TestPaddockPassesTrials uses Paddock itself as TestMutantsAreFound uses the mutants.
func TestPaddockPassesTrials(t *testing.T) {
	t.Parallel()
	a := newTrialPool(t)
	for name, how := range map[string]mode{
		"calls are disturbed": disturbed, "PostgreSQL crashes": crashed,
		"no call is cancelled": neverCancelled, "PostgreSQL is restored": restored,
		"a replica dies with its waiters": replicaLost, "tasks wait in circles": inCircles,
		"locks are in a tree": inTrees, "locks are frozen and ruled": ruled, "connections are cut": cutOff, "epochs begin": inEpochs,
		"locks move between cells": moving,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := a.trial(t, program(t), how)
			for round := range flagRounds.count() {
				report := x.round(round)
				x.must(x.missing)
				if !report.OK() {
					var text strings.Builder
					if err := report.WriteText(&text); err != nil {
						t.Error(err)
					}
					t.Fatal(text.String())
				}
			}
			if x.unexpected != nil {
				t.Error(x.unexpected)
			}
			t.Logf("%d calls without a violation", x.calls)
		})
	}
}

// summarize lists the checks that found violations, and the first violation.
func summarize(r verify.Report) string {
	var by []string
	first := ""
	for _, c := range r.Checks {
		if n := len(c.Violations); n > 0 {
			by = append(by, fmt.Sprintf("%q (%d)", c.Name, n))
			first = cmp.Or(first, c.Violations[0].Message)
		}
	}
	return strings.Join(by, ", ") + ": " + first
}
