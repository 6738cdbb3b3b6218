package faults_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// rateVariable is the environment variable with the rate, in percent, of the clock by which a mutant's engine
// extrapolates what the database's clock shows. It stands for a process whose clock runs fast, or stood still while
// its virtual machine was suspended.
const rateVariable = "PADDOCK_FAULTS_CLOCK_RATE"

const clockFile = `package engine

import (
	"cmp"
	"os"
	"strconv"
	"time"
)

var clockRate = readClockRate()

func readClockRate() time.Duration {
	percent, err := strconv.Atoi(cmp.Or(os.Getenv("` + rateVariable + `"), "100"))
	if err != nil {
		panic(err)
	}
	return time.Duration(percent)
}

func atRate(real time.Duration) time.Duration { return real * clockRate / 100 }

func fromRate(shown time.Duration) time.Duration { return shown * 100 / clockRate }
`

// changeClock gives the engine's clock a rate.
func (o overlay) changeClock() error {
	const engine = "store/internal/engine/"
	return errors.Join(
		o.change(engine+"cache.go", "max(t.Sub(r.before), 0)", "atRate(max(t.Sub(r.before), 0))"),
		o.change(engine+"cache.go", "r.after.Add(t.Sub(r.shown))", "r.after.Add(fromRate(t.Sub(r.shown)))"),
		o.add(engine+"clock_rate.go", clockFile),
	)
}

func clockRate(percent int) []string { return []string{fmt.Sprint(rateVariable, "=", percent)} }

// fastClock: the first replica's clock runs five times as fast, so a lease seems to be over long before its end.
func fastClock(s *stage) error {
	held := s.acquire(s.b(), s.name, 10*time.Second)
	_, err := s.a().Acquire(s.Context(), s.request(s.name, time.Second)) // it reads the lock and the clock
	s.isHeld(err)
	sleepFor(s.Context(), 3*time.Second)
	_, err = s.a().Acquire(s.Context(), s.request(s.name, time.Second))
	if err == nil && time.Now().Before(held.Until.Add(-time.Second)) {
		return violation("granted while another holds it, by a clock that runs fast")
	}
	return nil
}

// slowClock: the first replica's clock runs at a fifth, so it tells a holder that its lease lasts longer than it does.
func slowClock(s *stage) error {
	s.use(s.a(), s.name)
	sleepFor(s.Context(), 5*time.Second)
	held := s.acquire(s.a(), s.name, 6*time.Second)
	next := s.request(s.name, time.Second)
	next.Wait = 20 * time.Second
	_, err := s.b().Acquire(s.Context(), next)
	s.must(err)
	if time.Now().Before(held.Until.Add(-time.Second)) {
		return violation("granted while another was told that it holds it, by a clock that runs slow")
	}
	return nil
}

// untilOver: a renewal waits for its locked row until the lease is over.
func untilOver(s *stage) error {
	held := s.acquire(s.a(), s.name, time.Second)
	err := s.beyond(time.Now().Add(time.Second), func() error {
		_, err := s.a().Renew(s.Context(), lock.Renew{Name: s.name, LeaseID: held.ID})
		return err
	})
	if err == nil {
		return violation("a lease was renewed after its end")
	}
	return nil
}

// tokenOver: a reader waits for the locked row until the only other reader's lease is over.
func tokenOver(s *stage) error {
	first, second := s.request(s.name, time.Second), s.request(s.name, time.Minute)
	first.Mode, second.Mode = lock.Shared, lock.Shared
	held, err := s.a().Acquire(s.Context(), first)
	s.must(err)
	var joined lock.Grant
	s.must(s.beyond(time.Now().Add(time.Second), func() (err error) {
		joined, err = s.a().Acquire(s.Context(), second)
		return err
	}))
	if joined.Token == held.Token {
		return violation("a token was granted again after its end")
	}
	return nil
}

// beyond runs the call while the lock's row is locked, until a little after the end.
func (s *stage) beyond(end time.Time, call func() error) error {
	sleepFor(s.Context(), time.Until(end.Add(-150*time.Millisecond)))
	unlock := s.lockRow(s.name)
	done := make(chan error)
	go func() { done <- call() }()
	sleepFor(s.Context(), time.Until(end.Add(30*time.Millisecond)))
	unlock()
	return <-done
}
