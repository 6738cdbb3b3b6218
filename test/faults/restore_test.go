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

// What is granted between a copy and the restore of it.
const (
	// lostGrants is more than the 32 values that PostgreSQL writes to its log ahead of a sequence:
	// after the restore the sequence of tokens is behind the tokens that were granted.
	lostGrants = 60
	// fewLostGrants is less: the sequence is not behind, and only the locks tell of the restore.
	fewLostGrants = 10
	// restoreTTL is longer than a restore takes, so that leases which the restore loses are still
	// alive when the database answers again.
	restoreTTL = 4 * time.Second
	// contendEvery is the time between two requests for a lock.
	contendEvery = 200 * time.Millisecond
)

// A restoreVariant is a way to put the database back while replicas run.
type restoreVariant struct {
	name string
	copy copying
	how  restoring
	// grants is how many leases the restore loses; zero: lostGrants.
	grants int
	// blind restores at once after grants by one replica: no heartbeat comes between the copy and
	// the restore, so the other replica knows nothing newer than the copy.
	blind bool
}

var restoreVariants = []restoreVariant{
	{name: "a snapshot", copy: (*restorable).snapshot, how: restoring{stop: (*restorable).crash}},
	{name: "a snapshot, and another application writes", copy: (*restorable).snapshot, how: restoring{(*restorable).crash, true}},
	{name: "a base backup", copy: (*restorable).baseBackup, how: restoring{stop: (*restorable).shutDown}},
	{name: "a base backup, and another application writes", copy: (*restorable).baseBackup, how: restoring{(*restorable).shutDown, true}},
	{name: "a snapshot that few grants follow, and another application writes", copy: (*restorable).snapshot,
		how: restoring{(*restorable).crash, true}, grants: fewLostGrants},
	{name: "a snapshot that one replica has not seen passed", copy: (*restorable).snapshot, how: restoring{(*restorable).crash, true}, blind: true},
}

// TestARestoreIsNoticed puts the database back to an earlier state while two replicas run, and
// clients ask both for the locks of leases that the database has forgotten. Each restore must begin
// one epoch, before anything is granted. The blind variant is measured only: a replica that has
// seen nothing newer than the copy cannot notice.
func TestARestoreIsNoticed(t *testing.T) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy logs each connection that is refused
	usual := program(t)
	for _, v := range restoreVariants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			r := newRestorable(t)
			s := &site{t: t, program: usual, pulse: &pulse{}}
			s.serve(2, r.replicaURL(), "--migrate")
			var sum restoreFigures
			for n := range *flagRestores {
				sum.add(s.restores(r, v, fmt.Sprintf("restore-%d", n)))
			}
			t.Logf("%s: %v", v.name, sum)
			if err := sum.judge(); err != nil && !v.blind {
				t.Error(err)
			}
		})
	}
}

// restoreFigures count what restores led to.
type restoreFigures struct {
	restores int
	epochs   int // that began
	grants   int // that were lost
	alive    int // lost leases that had not ended when the database answered again
	double   int // grants while the holder of a lost lease counted on it
	stale    int // grants with a token that is not greater than all before the restore
	early    int // grants by the restored database before an epoch began
	closed   time.Duration
}

// add sums the figures up. closed is the shortest.
func (f *restoreFigures) add(o restoreFigures) {
	if f.restores == 0 || o.closed < f.closed {
		f.closed = o.closed
	}
	f.restores += o.restores
	f.epochs += o.epochs
	f.grants += o.grants
	f.alive += o.alive
	f.double += o.double
	f.stale += o.stale
	f.early += o.early
}

func (f restoreFigures) String() string {
	return fmt.Sprintf("%d restores: %d epochs begun, %d double grants, %d tokens that are not greater, %d grants before the epoch; "+
		"%d grants were lost, %d of those leases were alive when the database answered again; first grant %v after the restore began",
		f.restores, f.epochs, f.double, f.stale, f.early, f.grants, f.alive, f.closed.Round(time.Millisecond))
}

// judge returns an error if a restore was not noticed, or too late.
func (f restoreFigures) judge() error {
	var err error
	if f.epochs != f.restores {
		err = fmt.Errorf("%d restores have begun %d epochs, want one each", f.restores, f.epochs)
	}
	if f.double+f.stale+f.early > 0 {
		err = errors.Join(err, fmt.Errorf("%d locks were granted twice, %d tokens were not greater, %d grants came before the epoch",
			f.double, f.stale, f.early))
	}
	return err
}

// restores copies the database, has locks granted, puts the copy back and has other clients ask for
// the same locks.
func (s *site) restores(r *restorable, v restoreVariant, prefix string) restoreFigures {
	s.t.Helper()
	ctx := s.t.Context()
	s.must(v.copy(r, ctx))
	lost := s.grantAll(prefix, cmp.Or(v.grants, lostGrants), v.blind)
	if !v.blind {
		passes(ctx, noticing)
	}
	epoch, err := r.newestEpoch(ctx)
	s.must(err)

	began := time.Now()
	c := contest{site: s, lost: lost, began: began}
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

// grantAll acquires n locks at once: half through each replica, or all through the first.
func (s *site) grantAll(prefix string, n int, one bool) []belief {
	s.t.Helper()
	all := make([]belief, n)
	s.must(together(n, func(i int) error {
		b := &all[i]
		b.name = fmt.Sprintf("%s:%02d", prefix, i)
		a := lock.Acquire{Name: b.name, LeaseID: lock.LeaseID(uuid.New()), Holder: "holder of a lost lease", TTL: restoreTTL}
		locks := s.replica(i)
		if one {
			locks = s.any()
		}
		return s.insist(func(ctx context.Context) (err error) {
			b.Grant, err = locks.Acquire(ctx, a)
			return err
		})
	}))
	return all
}

// A contest is clients that ask for the locks of lost leases until each lock is granted.
type contest struct {
	*site
	lost  []belief
	began time.Time
	all   sync.WaitGroup

	mu      sync.Mutex
	figures restoreFigures
}

func (c *contest) start() {
	var greatest lock.Token
	for _, b := range c.lost {
		greatest = max(greatest, b.Token)
	}
	for i, b := range c.lost {
		c.all.Go(func() {
			g, at, err := c.ask(b.name, i)
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

// count compares a grant with the lease that was lost. The caller holds mu.
func (c *contest) count(lost belief, g lock.Grant, at time.Time, greatest lock.Token) {
	if at.Before(lost.Until) {
		c.figures.double++
	}
	if g.Token <= greatest {
		c.figures.stale++
	}
	if d := at.Sub(c.began); c.figures.closed == 0 || d < c.figures.closed {
		c.figures.closed = d
	}
}

// finish waits until each lock is granted.
func (c *contest) finish() restoreFigures {
	c.all.Wait()
	return c.figures
}

// ask asks both replicas in turn for a lock, until one grants it.
func (c *contest) ask(name string, i int) (g lock.Grant, at time.Time, err error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	a := lock.Acquire{Name: name, LeaseID: lock.LeaseID(uuid.New()), Holder: "another client", TTL: time.Second}
	for ; ; i++ {
		g, err = c.replica(i).Acquire(ctx, a)
		if err == nil || !retryable(err) {
			return g, time.Now(), err
		}
		if !passes(ctx, contendEvery) {
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

// epochsAfter returns how many epochs are newer than that one, and how many locks with the prefix
// were granted before the newest epoch began: all of them if none is newer.
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
	err = conn.QueryRow(ctx, `select count(*) from paddock.events
		where starts_with(name, $1) and kind = $2
		and at < coalesce((select max(began_at) from paddock.epochs where epoch > $3), 'infinity')`,
		prefix+":", lock.Granted, epoch).Scan(&early)
	return epochs, early, err
}
