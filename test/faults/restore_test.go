package faults_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"github.com/paddock-lock/paddock/lock"
)

// A restoreVariant is a way to restore the database while replicas run.
type restoreVariant struct {
	name  string
	copy  copyFunc
	how   restoreOptions
	spent int // tokens that the restore loses beside those of leases
}

// Of the values of a sequence PostgreSQL logs 32 ahead: after the loss of more, the sequence is behind what was granted;
// after the loss of few, only the locks show the restore.
const manySpent, fewSpent = 60, 4

var restoreVariants = []restoreVariant{
	{"a snapshot", (*restorable).snapshot, restoreOptions{stop: (*restorable).crash}, manySpent},
	{"a snapshot, and another application writes", (*restorable).snapshot,
		restoreOptions{(*restorable).crash, true}, manySpent},
	{"a base backup", (*restorable).baseBackup, restoreOptions{stop: (*restorable).shutDown}, manySpent},
	{"a base backup, and another application writes", (*restorable).baseBackup,
		restoreOptions{(*restorable).shutDown, true}, manySpent},
	{"a snapshot before few grants, and another application writes", (*restorable).snapshot,
		restoreOptions{(*restorable).crash, true}, fewSpent},
}

// TestRestoreBeginsAnEpoch restores an earlier state of the database while two replicas run, and clients request the
// locks of the lost leases from both. Each restore must begin one epoch before any lock is granted.
func TestRestoreBeginsAnEpoch(t *testing.T) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy logs each refused connection
	normal := program(t)
	for _, v := range restoreVariants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			r := newRestorable(t)
			s := &clusterHarness{t: t, program: normal, meter: &meter{}}
			s.serve(2, r.replicaURL(), "--migrate")
			for range flagRestores.count() {
				s.runRestore(r, v)
			}
		})
	}
}

// runRestore copies the database, and loses what is granted afterwards by restoring the copy.
func (s *clusterHarness) runRestore(r *restorable, v restoreVariant) {
	s.t.Helper()
	var before int64
	o := s.runLoss(loss{
		before: func(ctx context.Context) error { return v.copy(r, ctx) },
		spent:  v.spent,
		trigger: func(ctx context.Context) (err error) {
			sleepFor(ctx, noticeDelay)
			if before, err = r.newestEpoch(ctx); err != nil {
				return err
			}
			return r.restore(ctx, v.how)
		},
	})
	o.check(s.t)
	epochs, early, err := r.epochsAfter(s.t.Context(), before, o.lost)
	s.must(err)
	if epochs != 1 || early > 0 {
		s.t.Errorf("the restore began %d epochs, want one; %d locks were granted before", epochs, early)
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
