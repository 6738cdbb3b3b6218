package faults_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/paddock-lock/paddock/lock"
)

// Grants between a copy and its restore.
const (
	// lostGrants is more than the 32 values that PostgreSQL logs ahead of a sequence: after the restore the
	// sequence of tokens is behind the granted tokens.
	lostGrants = 60
	// fewLostGrants is less: the sequence is not behind, and only the locks show the restore.
	fewLostGrants = 10
	// restoreTTL is longer than a restore takes, so that lost leases are still alive when the database answers
	// again.
	restoreTTL = 4 * time.Second
	// contendEvery is the time between two requests for a lock.
	contendEvery = 200 * time.Millisecond
)

// A restoreVariant is a way to restore the database while replicas run.
type restoreVariant struct {
	name string
	copy copyFunc
	how  restoreOptions
	// grants is the number of leases that the restore loses; zero: lostGrants.
	grants int
	// blind restores right after grants by one replica: no heartbeat comes between the copy and the restore, so
	// the other replica knows nothing newer than the copy.
	blind bool
}

var restoreVariants = []restoreVariant{
	{name: "a snapshot", copy: (*restorable).snapshot, how: restoreOptions{stop: (*restorable).crash}},
	{name: "a snapshot, and another application writes", copy: (*restorable).snapshot,
		how: restoreOptions{(*restorable).crash, true}},
	{name: "a base backup", copy: (*restorable).baseBackup, how: restoreOptions{stop: (*restorable).shutDown}},
	{name: "a base backup, and another application writes", copy: (*restorable).baseBackup,
		how: restoreOptions{(*restorable).shutDown, true}},
	{name: "a snapshot before few grants, and another application writes", copy: (*restorable).snapshot,
		how: restoreOptions{(*restorable).crash, true}, grants: fewLostGrants},
	{name: "a snapshot whose state one replica has not seen exceeded", copy: (*restorable).snapshot,
		how: restoreOptions{(*restorable).crash, true}, blind: true},
}

// TestRestoreBeginsAnEpoch restores an earlier state of the database while two replicas run, and clients request the
// locks of the lost leases from both. Each restore must begin one epoch before any lock is granted. The blind variant
// is only measured: a replica that has seen nothing newer than the copy cannot notice the restore.
func TestRestoreBeginsAnEpoch(t *testing.T) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy logs each refused connection
	normal := program(t)
	for _, v := range restoreVariants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			r := newRestorable(t)
			s := &clusterHarness{t: t, program: normal, meter: &grantMeter{}}
			s.serve(2, r.replicaURL(), "--migrate")
			var sum restoreTotals
			for n := range flagRestores.count() {
				sum.add(s.runRestore(r, v, fmt.Sprintf("restore-%d", n)))
			}
			t.Logf("%s: %v", v.name, sum)
			if err := sum.check(); err != nil && !v.blind {
				t.Error(err)
			}
		})
	}
}

// restoreTotals count the effects of restores.
type restoreTotals struct {
	restores int
	epochs   int // epochs begun
	grants   int // lost grants
	alive    int // lost leases that were alive when the database answered again
	double   int // grants while the holder of a lost lease counted on it
	stale    int // grants with a token not greater than all before the restore
	early    int // grants after the restore, before an epoch began
	paused   time.Duration
}

// add adds o. paused is the minimum.
func (f *restoreTotals) add(o restoreTotals) {
	if f.restores == 0 || o.paused < f.paused {
		f.paused = o.paused
	}
	f.restores += o.restores
	f.epochs += o.epochs
	f.grants += o.grants
	f.alive += o.alive
	f.double += o.double
	f.stale += o.stale
	f.early += o.early
}

func (f restoreTotals) String() string {
	return fmt.Sprintf("%d restores: %d epochs begun, %d double grants, %d stale tokens, %d grants before the epoch; "+
		"%d grants were lost, %d of those leases were alive when the database answered again; "+
		"first grant %v after the restore began",
		f.restores, f.epochs, f.double, f.stale, f.early, f.grants, f.alive, f.paused.Round(time.Millisecond))
}

// check returns an error if a restore was noticed too late or not at all.
func (f restoreTotals) check() error {
	var err error
	if f.epochs != f.restores {
		err = fmt.Errorf("%d restores began %d epochs, want one each", f.restores, f.epochs)
	}
	if f.double+f.stale+f.early > 0 {
		err = errors.Join(err,
			fmt.Errorf("%d locks were granted twice, %d tokens were not greater, %d grants came before the epoch",
				f.double, f.stale, f.early))
	}
	return err
}

// runRestore copies the database, grants locks, restores the copy and lets other clients request the same locks.
func (s *clusterHarness) runRestore(r *restorable, v restoreVariant, prefix string) restoreTotals {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(v.copy(r, ctx))
	lost := s.grantAtOnce(prefix, cmp.Or(v.grants, lostGrants), v.blind)
	if !v.blind {
		sleepFor(ctx, noticeDelay)
	}
	epoch, err := r.newestEpoch(ctx)
	s.must(err)

	began := time.Now()
	c := contenders{clusterHarness: s, lost: lost, began: began}
	c.start()
	s.must(r.restore(ctx, v.how))
	back := time.Now()
	f := c.finish()
	f.restores, f.grants = 1, len(lost)
	for _, b := range lost {
		if b.Until.After(back) {
			f.alive++
		}
	}
	f.epochs, f.early, err = r.epochsAfter(ctx, epoch, prefix)
	s.must(err)
	return f
}

// grantAtOnce acquires n locks concurrently: half through each replica, or all through the first.
func (s *clusterHarness) grantAtOnce(prefix string, n int, one bool) []heldLease {
	s.t.Helper()
	all := make([]heldLease, n)
	s.must(inParallel(n, func(i int) error {
		b := &all[i]
		b.name = fmt.Sprintf("%s:%02d", prefix, i)
		a := lock.Acquire{Name: b.name, LeaseID: lock.LeaseID(uuid.New()), Holder: "holder of a lost lease",
			TTL: restoreTTL}
		locks := s.replica(i)
		if one {
			locks = s.first()
		}
		return s.retryCall(func(ctx context.Context) (err error) {
			b.Grant, err = locks.Acquire(ctx, a)
			return err
		})
	}))
	return all
}

// contenders are clients that request the locks of lost leases until each is granted.
type contenders struct {
	*clusterHarness
	lost  []heldLease
	began time.Time
	all   sync.WaitGroup

	mu     sync.Mutex
	totals restoreTotals
}

func (c *contenders) start() {
	var greatest lock.Token
	for _, b := range c.lost {
		greatest = max(greatest, b.Token)
	}
	for i, b := range c.lost {
		c.all.Go(func() {
			g, at, err := c.acquire(b.name, i)
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.t.Errorf("%s is not granted: %v", b.name, err)
				return
			}
			c.count(b, g, at, greatest)
		})
	}
}

// count compares a grant with the lost lease. The caller holds mu.
func (c *contenders) count(lost heldLease, g lock.Grant, at time.Time, greatest lock.Token) {
	if at.Before(lost.Until) {
		c.totals.double++
	}
	if g.Token <= greatest {
		c.totals.stale++
	}
	if d := at.Sub(c.began); c.totals.paused == 0 || d < c.totals.paused {
		c.totals.paused = d
	}
}

// finish waits until each lock is granted.
func (c *contenders) finish() restoreTotals {
	c.all.Wait()
	return c.totals
}

// acquire requests a lock from both replicas in turn until one grants it.
func (c *contenders) acquire(name string, i int) (g lock.Grant, at time.Time, err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), stepTimeout)
	defer cancel()
	a := lock.Acquire{Name: name, LeaseID: lock.LeaseID(uuid.New()), Holder: "another client", TTL: time.Second}
	for ; ; i++ {
		g, err = c.replica(i).Acquire(ctx, a)
		if err == nil || !retryable(err) {
			return g, time.Now(), err
		}
		if !sleepFor(ctx, contendEvery) {
			return g, time.Now(), errors.Join(err, context.Cause(ctx))
		}
	}
}

// newestEpoch returns the number of the newest epoch.
func (r *restorable) newestEpoch(ctx context.Context) (number int64, err error) {
	conn, err := r.connect(ctx, "paddock")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, "select max(epoch) from paddock.epochs").Scan(&number)
	return number, err
}

// epochsAfter returns how many epochs are newer than epoch, and how many locks with the prefix were granted before the
// newest epoch began: all of them if none is newer.
func (r *restorable) epochsAfter(ctx context.Context, epoch int64, prefix string) (epochs, early int, err error) {
	conn, err := r.connect(ctx, "paddock")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	err = conn.QueryRow(ctx, `select count(*) from paddock.epochs where epoch > $1`, epoch).Scan(&epochs)
	if err != nil {
		return 0, 0, err
	}
	err = conn.QueryRow(ctx, `select count(*)
		from paddock.event_batches b, unnest(b.entries) entry, json_array_elements(entry) with ordinality as e (event, ord)
		where starts_with(entry ->> 0, $1) and ord > 2 and (event ->> 3)::integer = $2
		and at < coalesce((select max(began_at) from paddock.epochs where epoch > $3), 'infinity')`,
		prefix+":", lock.Granted, epoch).Scan(&early)
	return epochs, early, err
}
