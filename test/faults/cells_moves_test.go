package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

// flagMoves is how often a group moves.
var flagMoves = repeats{flag.Int("faults.moves", 0, "moves in TestAGroupMovesUnderLoad; 0: 8, or 100 in the long form"), 8, 100}

// movedGroup is the group that moves from cell to cell.
const movedGroup = "moved"

// TestAGroupMovesUnderLoad moves a group from cell to cell while 32 clients use it, with sets, queues, sessions, a tree,
// freezes and fenced values. Half of the commands that move it are killed at random steps, and run again. Package verify
// must find no violation; leases and sessions that are kept all the time, also sessions over several cells, must not be
// lost; and clients that wait until they are granted the lock must be served in their order.
func TestAGroupMovesUnderLoad(t *testing.T) {
	t.Parallel()
	c := newCells(t, program(t))
	m := &mover{cells: c, shown: map[string]paddock.Service{}, rng: rand.New(rand.NewPCG(*flagSeed, 7)), at: homeOf(movedGroup), typical: 200 * time.Millisecond}
	kept := keepAll(t, c)
	any, inOrder := verify.NewRecorder(), verify.NewRecorder()
	for prefix, rec := range map[string]*verify.Recorder{movedGroup + ":any": any, movedGroup + ":order": inOrder} {
		m.shown[prefix] = rec.Client("mover", c.services[0].Locks)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all, loading := errgroup.WithContext(ctx)
	o := workload.Options{Services: c.services, Clients: 16, Seed: *flagSeed, Subscribers: true, Tree: true, Policy: true, Hold: true,
		TTL: 2 * time.Second}
	all.Go(func() error {
		o := o
		o.Prefix = movedGroup + ":any"
		_, err := workload.Run(loading, any, o)
		return err
	})
	all.Go(func() error {
		o := o
		o.Prefix, o.Policy, o.NeverCancel, o.Locks = movedGroup+":order", false, true, 6
		_, err := workload.Run(loading, inOrder, o)
		return err
	})
	all.Go(func() error {
		defer cancel()
		return m.moveAll(loading, flagMoves.count())
	})
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	kept.check()
	t.Logf("%d moves, %d killed commands, a move takes %v", m.moves, m.killed, m.typical.Truncate(time.Millisecond))
	checkMoved(t, c, any, movedGroup+":any", verify.CheckOptions{AllowOvertaking: true, Cells: true})
	checkMoved(t, c, inOrder, movedGroup+":order", verify.CheckOptions{Cells: true})
}

// checkMoved checks what was recorded about the locks with the prefix.
func checkMoved(t *testing.T, c *cells, rec *verify.Recorder, prefix string, o verify.CheckOptions) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*stepTimeout)
	defer cancel()
	if err := workload.WaitUntilFree(ctx, rec.Client(c.addresses[0], c.services[0].Locks), prefix+":"); err != nil {
		t.Error(err)
	}
	h := rec.History()
	var err error
	if h.Events, err = verify.Collect(ctx, c.services[0].Locks, prefix+":"); err != nil {
		t.Error(err)
	}
	report := h.Check(o)
	var text strings.Builder
	if err := report.WriteText(&text); err != nil {
		t.Error(err)
	}
	t.Log(text.String())
	if !report.OK() || report.Operations < 100 {
		t.Errorf("%s: the checker found violations, or %d calls are too few", prefix, report.Operations)
	}
}

// A mover moves the group.
type mover struct {
	*cells
	shown   map[string]paddock.Service // by the prefix of the locks whose history tells where the group is
	rng     *rand.Rand
	at      string // the cell that has the group
	typical time.Duration
	moves   int
	killed  int
}

// moveAll moves the group that often.
func (m *mover) moveAll(ctx context.Context, times int) error {
	for range times {
		if !sleepFor(ctx, time.Duration(m.rng.Int64N(int64(600*time.Millisecond)))) {
			return nil
		}
		if err := m.move(ctx); err != nil {
			return unlessDone(ctx, err)
		}
	}
	return nil
}

// move moves the group to another cell. Every other time it kills the command at a random step, and runs it again, in one
// of three cases to another cell.
func (m *mover) move(ctx context.Context) error {
	to := m.another()
	for m.rng.IntN(2) == 0 {
		finished, err := m.killedMove(ctx, to)
		if err != nil {
			return err
		}
		if m.killed++; finished {
			m.at = to
		}
		if m.rng.IntN(3) == 0 {
			to = m.another()
		}
	}
	began := time.Now()
	if output, err := m.paddock(ctx, "cell", "pin", to, movedGroup).CombinedOutput(); err != nil {
		return fmt.Errorf("moving the group from %s to %s: %w\n%s", m.at, to, err, output)
	}
	m.typical = (3*m.typical + time.Since(began)) / 4
	m.moves++
	m.at = to
	return errors.Join(m.hasOneOwner(ctx), m.showPlace(ctx))
}

func (m *mover) another() string {
	for {
		if to := cellNames[m.rng.IntN(len(cellNames))]; to != m.at {
			return to
		}
	}
}

// killedMove runs the command and kills it at a random time. It reports whether the command was faster.
func (m *mover) killedMove(ctx context.Context, to string) (finished bool, err error) {
	cmd := m.paddock(ctx, "cell", "pin", to, movedGroup)
	if err := cmd.Start(); err != nil {
		return false, err
	}
	sleepFor(ctx, time.Duration(m.rng.Int64N(int64(m.typical))))
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && ctx.Err() == nil && cmd.ProcessState == nil {
		m.Log(err)
	}
	if cmd.Wait() != nil {
		return false, nil
	}
	return true, m.showPlace(ctx)
}

func (m *mover) showPlace(ctx context.Context) error {
	for prefix, locks := range m.shown {
		if err := showPlace(ctx, locks, prefix); err != nil {
			return err
		}
	}
	return nil
}

// hasOneOwner checks that exactly one database says that the group is there.
func (m *mover) hasOneOwner(ctx context.Context) error {
	owners := 0
	for i, db := range m.databases {
		conn, err := db.connect(ctx, "paddock")
		if err != nil {
			return err
		}
		var here bool
		err = conn.QueryRow(ctx, "select exists (select from paddock.placement where group_name = $1 and state = 'here')", movedGroup).Scan(&here)
		if err := errors.Join(err, conn.Close(ctx)); err != nil {
			return err
		}
		if here {
			owners++
			if cellNames[i] != m.at {
				return fmt.Errorf("the group is in the cell %s, and not in %s", cellNames[i], m.at)
			}
		}
	}
	if owners != 1 {
		return fmt.Errorf("%d cells have the group after it moved to %s", owners, m.at)
	}
	return nil
}

// A keeper keeps leases for the whole test, of which none may be lost: in the group that moves, and in sessions that have
// a lease in each cell and one in the group.
type keeper struct {
	*testing.T
	clients []*client.Client
	all     *errgroup.Group
	stop    context.CancelFunc
}

// keepAll acquires the leases and begins to renew them.
func keepAll(t *testing.T, c *cells) *keeper {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	all, renewing := errgroup.WithContext(ctx)
	k := &keeper{T: t, clients: c.clients(), all: all, stop: stop}
	const ttl = 6 * time.Second
	for i := range 8 {
		a := lock.Acquire{Locks: lock.One(fmt.Sprintf("%s:kept:%d", movedGroup, i)), LeaseID: lock.LeaseID(uuid.New()), Holder: "keeper", TTL: ttl}
		k.acquire(ctx, a)
		all.Go(func() error {
			return k.renew(renewing, ttl, func(ctx context.Context, c *client.Client) error {
				_, err := c.Renew(ctx, lock.Renew{Locks: a.Names(), LeaseID: a.LeaseID})
				return err
			})
		})
	}
	for i := range 4 {
		session := lock.SessionID(uuid.New())
		if _, err := k.clients[0].OpenSession(ctx, lock.OpenSession{ID: session, Holder: "traveller", TTL: ttl}); err != nil {
			t.Fatal(err)
		}
		groups := []string{movedGroup}
		for _, cell := range cellNames {
			groups = append(groups, groupAt(cell))
		}
		for _, group := range groups {
			k.acquire(ctx, lock.Acquire{Locks: lock.One(fmt.Sprintf("%s:travels:%d", group, i)), LeaseID: lock.LeaseID(uuid.New()),
				Holder: "traveller", SessionID: session})
		}
		all.Go(func() error {
			return k.renew(renewing, ttl, func(ctx context.Context, c *client.Client) error {
				_, err := c.RenewSession(ctx, lock.RenewSession{ID: session})
				return err
			})
		})
	}
	return k
}

func (k *keeper) acquire(ctx context.Context, a lock.Acquire) {
	k.Helper()
	if _, err := k.clients[0].Acquire(ctx, a); err != nil {
		k.Fatalf("%s: %v", a.Names(), err)
	}
}

// renew renews a lease again and again, as a guard does: a failure that is temporary is retried until the lease ends.
func (k *keeper) renew(ctx context.Context, ttl time.Duration, do func(context.Context, *client.Client) error) error {
	last, n := time.Now(), 0
	for sleepFor(ctx, ttl/10) {
		n++
		began := time.Now()
		bounded, cancel := context.WithTimeout(ctx, ttl)
		err := do(bounded, k.clients[n%len(k.clients)])
		cancel()
		switch {
		case err == nil:
			last = began
		case ctx.Err() != nil:
			return nil
		case isLoss(err), time.Since(last) > ttl:
			return fmt.Errorf("a lease is lost, whose last renewal was sent %v ago: %w", time.Since(last).Truncate(time.Millisecond), err)
		}
	}
	return nil
}

// check ends the renewals, and checks that no lease was lost.
func (k *keeper) check() {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), stepTimeout)
	defer cancel()
	for i := range 4 {
		for _, name := range []string{fmt.Sprintf("%s:kept:%d", movedGroup, i), fmt.Sprintf("%s:travels:%d", movedGroup, i)} {
			if l, err := k.clients[0].Lock(ctx, name); err != nil || l.State != lock.Held {
				k.Errorf("%s is %v, %v", name, l.State, err)
			}
		}
	}
	k.stop()
	if err := k.all.Wait(); err != nil {
		k.Error(err)
	}
}
