package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// leftovers are what must be gone from the database soon after the last client is,
// and how many of it there are.
var leftovers = []struct{ what, count string }{
	{"connections of Paddock that are in a transaction", "select count(*) from pg_catalog.pg_stat_activity where application_name = 'paddock' and state <> 'idle'"},
	{"advisory locks", "select count(*) from pg_catalog.pg_locks where locktype = 'advisory'"},
	{"waiters", "select count(*) from paddock.waiters"},
	{"leases", "select count(*) from paddock.locks where lease_id is not null"},
}

// awaitCleanup waits until nothing is left over.
func (d *deployment) awaitCleanup(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	conn, err := d.database.connect(ctx, "paddock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, l := range leftovers {
		err := retry(ctx, func() error {
			var n int
			if err := conn.QueryRow(ctx, l.count).Scan(&n); err != nil || n == 0 {
				return err
			}
			return fmt.Errorf("there are still %d %s", n, l.what)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// retry tries again and again retry it goes well or ctx ends, and returns the last
// error.
func retry(ctx context.Context, try func() error) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("%w, and %w", err, context.Cause(ctx))
		}
	}
}

// checkReplicasServe has each replica grant a lock, renew the lease and take it back.
func (p *round) checkReplicasServe(ctx context.Context, prefix string) error {
	return inParallel(len(p.replicas), func(i int) error {
		r := p.replicas[i]
		c, err := r.client()
		if err != nil {
			return err
		}
		locks := p.recorder.Client(r.String(), c)
		ctx, cancel := context.WithTimeout(ctx, stepTimeout)
		defer cancel()
		name, id := fmt.Sprintf("%s:probe:%d", prefix, r.number), lock.LeaseID(uuid.New())
		for _, call := range []func() error{
			func() error {
				_, err := locks.Acquire(ctx, lock.Acquire{Name: name, LeaseID: id, Holder: "the probe of " + r.String(), TTL: time.Minute})
				return err
			},
			func() error { _, err := locks.Renew(ctx, lock.Renew{Name: name, LeaseID: id}); return err },
			func() error { return locks.Release(ctx, lock.Release{Name: name, LeaseID: id}) },
		} {
			if err := retry(ctx, call); err != nil {
				return fmt.Errorf("%v does not serve: %w", r, err)
			}
		}
		return nil
	})
}

// checkLogs returns an error if a replica has said that it broke down, or something
// that is secret.
func (d *deployment) checkLogs(h verify.History) error {
	secret := secretsOf(h)
	var err error
	for _, r := range d.replicas {
		for line := range bytes.Lines(r.log.bytes()) {
			if said := d.forbiddenInLog(line, secret); said != "" {
				err = errors.Join(err, fmt.Errorf("%v said %s", r, said))
			}
		}
	}
	return err
}

// forbiddenInLog returns what is wrong with a line of a log; nothing if nothing is.
func (d *deployment) forbiddenInLog(line []byte, secret map[lock.LeaseID]bool) string {
	for _, breakdown := range []string{"panic", "fatal error:", "WARNING: DATA RACE"} {
		if bytes.Contains(line, []byte(breakdown)) {
			return string(line)
		}
	}
	if bytes.Contains(line, []byte(d.database.password)) {
		return "what the password is"
	}
	for _, word := range bytes.FieldsFunc(line, notInUUID) {
		if id, err := uuid.ParseBytes(word); err == nil && secret[lock.LeaseID(id)] {
			return "what a lease_id is"
		}
	}
	return ""
}

// notInUUID is whether a UUID cannot have that letter.
func notInUUID(letter rune) bool {
	return letter != '-' && (letter < '0' || letter > '9') && (letter < 'a' || letter > 'f') && (letter < 'A' || letter > 'F')
}

// lostCommits is how many commits the replicas sent off without being answered.
func (d *deployment) lostCommits() int {
	n := 0
	for _, r := range d.replicas {
		n += bytes.Count(r.log.bytes(), []byte(`"msg":"a commit's outcome is unknown"`))
	}
	return n
}

func secretsOf(h verify.History) map[lock.LeaseID]bool {
	secret := map[lock.LeaseID]bool{}
	for _, c := range h.Calls {
		if a, ok := c.Request.(lock.Acquire); ok {
			secret[a.LeaseID] = true
		}
	}
	return secret
}

// checkClocks returns an error unless each replica takes the time to be as far from
// the machine's as it is to.
func (d *deployment) checkClocks() error {
	var err error
	for _, r := range d.replicas {
		line, _, _ := bytes.Cut(r.log.bytes(), []byte("\n"))
		var first struct{ Time time.Time }
		if e := json.Unmarshal(line, &first); e != nil {
			err = errors.Join(err, e)
		}
		if off := time.Until(first.Time); (off - r.skew).Abs() > 5*time.Minute {
			err = errors.Join(err, fmt.Errorf("the clock of %v is off by %v, not %v", r, off, r.skew))
		}
	}
	return err
}
