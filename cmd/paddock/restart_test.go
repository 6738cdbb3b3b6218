package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestTheWaitersOfAKilledReplicaArePassedOverAndFindTheirPlaces(t *testing.T) {
	t.Parallel()
	s := begin(t, pgtest.URL(t))
	doomed, other := s.replicas[0], s.replicas[1]
	holder := s.granted(other, lock.Acquire{Holder: "holder"})
	five := numbered("waiter", 5)
	var left []*caller
	for _, h := range five {
		left = append(left, s.joins(doomed, h))
	}
	sixth := s.joins(other, "the sixth")
	doomed.process.signal(t, syscall.SIGKILL)
	for _, c := range left {
		if c.answered(); !errors.Is(c.err, lock.ErrUnknownOutcome) {
			t.Fatalf("%s was answered %v by a replica that was killed", c.Holder, c.err)
		}
	}
	killed := time.Now()
	s.release(other, holder.ID)
	sixth.has()
	t.Logf("the sixth had the lock %v after the others' replica was killed", time.Since(killed))

	late := s.joins(other, "one who came later")
	line, r := append(slices.Clone(five), late.Holder), newRoom()
	s.comeBack(other, left, r)
	s.turns.Go(func() { late.turn(other, r) })
	s.attached(other, line)
	s.release(other, sixth.LeaseID)
	s.turns.Wait()
	r.visited(s, line)
	s.proven(verify.Rules{AllowOvertaking: true})
}

// comeBack has the callers, who were not granted the lock, ask again in any order,
// and use it when they have it.
func (s *scene) comeBack(via lock.Service, callers []*caller, r *room) {
	for _, i := range rand.Perm(len(callers)) {
		c := s.calls(via, lock.Acquire{Holder: callers[i].Holder, LeaseID: callers[i].LeaseID})
		s.turns.Go(func() { c.turn(via, r) })
	}
}

func TestAReplicaThatStopsSendsItsWaitersToAnotherWhereTheirPlacesAre(t *testing.T) {
	t.Parallel()
	s := begin(t, pgtest.URL(t))
	stopping, other := s.replicas[0], s.replicas[1]
	holder := s.granted(other, lock.Acquire{Holder: "holder"})
	line := numbered("waiter", 20)
	var posts []*post
	for _, h := range line {
		posts = append(posts, s.posts(stopping, h))
		s.heard.kind(lock.Queued, h)
	}
	told := time.Now()
	if code := stopping.process.signal(t, syscall.SIGTERM); code != exitOK || time.Since(told) > lock.MaxWait/5 {
		t.Errorf("exit code %d after %v", code, time.Since(told))
	}
	var callers []*caller
	for _, p := range posts {
		p.refusedFor(lock.ErrUnavailable, http.StatusServiceUnavailable)
		if seconds, err := strconv.Atoi(p.header.Get("Retry-After")); err != nil || seconds < 1 {
			t.Errorf("Retry-After is %q", p.header.Get("Retry-After"))
		}
		callers = append(callers, &caller{Acquire: p.Acquire})
	}
	r := newRoom()
	s.comeBack(other, callers, r)
	s.attached(other, line)
	s.release(other, holder.ID)
	s.turns.Wait()
	r.visited(s, line)
	s.proven(verify.Rules{AllowOvertaking: true})
}

func TestWaitersOutliveTheCrashOfTheDatabase(t *testing.T) {
	t.Parallel()
	db, databaseURL := pgtest.Server(t)
	s := begin(t, databaseURL)
	holder := s.granted(s.replicas[0], lock.Acquire{Holder: "holder"})
	line, r := numbered("waiter", 50), newRoom()
	for i, h := range line {
		via := insistent{s.replicas[i%2], s, i}
		c := s.joins(via, h)
		s.turns.Go(func() { c.turn(via, r) })
	}
	crash := func() {
		s.must(db.Kill())
		s.must(db.Restart(t.Context()))
	}
	crash()
	s.release(insistent{s.replicas[0], s, 0}, holder.ID)
	s.eventually("half of them were served", func() bool { return len(r.seen()) >= len(line)/2 })
	crash()
	s.turns.Wait()
	r.visited(s, line)
	r.sound(s, 1)
	s.proven(verify.Rules{})
}

// An insistent service is for callers who ask again, of another replica each time,
// until there is an answer that means something: what they do that are told 503,
// or nothing at all.
type insistent struct {
	lock.Service
	scene *scene
	first int // replica
}

func (i insistent) Acquire(ctx context.Context, a lock.Acquire) (g lock.Grant, err error) {
	err = i.ask(ctx, func(l lock.Service) error {
		g, err = l.Acquire(ctx, a)
		return err
	})
	return g, err
}

func (i insistent) Renew(ctx context.Context, n lock.Renew) (g lock.Grant, err error) {
	err = i.ask(ctx, func(l lock.Service) error {
		g, err = l.Renew(ctx, n)
		return err
	})
	return g, err
}

func (i insistent) Release(ctx context.Context, r lock.Release) error {
	return i.ask(ctx, func(l lock.Service) error { return l.Release(ctx, r) })
}

func (i insistent) ask(ctx context.Context, ask func(lock.Service) error) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for n := i.first; ; n++ {
		err := ask(i.scene.replicas[n%len(i.scene.replicas)])
		if !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnknownOutcome) {
			return err
		}
		i.scene.retries.Add(1)
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}
