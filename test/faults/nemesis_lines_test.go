package faults_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// networkNemeses returns what goes wrong between clients and Paddock, or Paddock and
// PostgreSQL. That answers are cut, and with luck after a commit, comes more often.
func networkNemeses(f component) []nemesis {
	between := " between " + string(f)
	onLine := func(draw func(*rand.Rand) []toxic) func(context.Context, *deployment, fault) (undoFunc, error) {
		return func(_ context.Context, d *deployment, f fault) (undoFunc, error) {
			return addToxics(d, f, draw(f.rng()))
		}
	}
	brief := durationRange{50 * time.Millisecond, 600 * time.Millisecond}
	return []nemesis{
		{"connections are reset" + between, 1, f, 30, brief, onLine(resets)},
		{"all is delayed" + between, 1, f, 30, aboutASecond, onLine(delays)},
		{"all is slow and in small pieces" + between, 1, f, 30, aboutASecond, onLine(pieces)},
		{"requests are swallowed" + between, 1, f, 30, durationRange{300 * time.Millisecond, 2500 * time.Millisecond}, onLine(drops(requests))},
		{"answers are swallowed" + between, 1, f, 30, durationRange{300 * time.Millisecond, 2500 * time.Millisecond}, onLine(drops(answers))},
		{"all is swallowed" + between, 1, f, 30, durationRange{300 * time.Millisecond, 2500 * time.Millisecond}, onLine(drops(requests, answers))},
		{"requests are cut off" + between, 1, f, 30, brief, onLine(cutsOff(requests))},
		{"answers are cut off" + between, 2, f, 40, brief, onLine(cutsOff(answers))},
	}
}

// addToxics puts the toxics on the lines that the fault is about.
func addToxics(d *deployment, f fault, toxics []toxic) (undoFunc, error) {
	var mu sync.Mutex
	var cures []undoFunc
	err := f.each(d, func(r *replica) error {
		l := r.clientProxy
		if f.component == databaseNetwork {
			l = r.databaseProxy
		}
		var err error
		for _, x := range toxics {
			c, e := l.addToxic(x)
			if err = errors.Join(err, e); e == nil {
				mu.Lock()
				cures = append(cures, c)
				mu.Unlock()
			}
		}
		return err
	})
	return func(ctx context.Context) error {
		return inParallel(len(cures), func(i int) error { return cures[i](ctx) })
	}, err
}

// resets ends connections, those that there are and those that come, at the next byte.
func resets(*rand.Rand) []toxic {
	now := map[string]int{"timeout": 0}
	return []toxic{{"reset_peer", requests, now}, {"reset_peer", answers, now}}
}

func delays(r *rand.Rand) []toxic {
	by := func() map[string]int { return map[string]int{"latency": 50 + r.IntN(450), "jitter": r.IntN(50)} }
	return []toxic{{"latency", requests, by()}, {"latency", answers, by()}}
}

func pieces(r *rand.Rand) []toxic {
	slices := map[string]int{"average_size": 16 + r.IntN(200), "size_variation": 8, "delay": r.IntN(300)} // delay in microseconds
	narrow := map[string]int{"rate": 50 + r.IntN(150)}                                                    // in kilobytes a second
	return []toxic{{"slicer", requests, slices}, {"slicer", answers, slices}, {"bandwidth", answers, narrow}}
}

// drops lets nothing through that way. The connections stay open, and are closed
// when it is over.
func drops(directions ...direction) func(*rand.Rand) []toxic {
	return func(*rand.Rand) (all []toxic) {
		for _, w := range directions {
			all = append(all, toxic{"timeout", w, map[string]int{"timeout": 0}})
		}
		return all
	}
}

// cutsOff ends each connection after a few more bytes that way: none, or enough for some
// of a message, or for a connection to be made anew and then cut.
func cutsOff(to direction) func(*rand.Rand) []toxic {
	return func(r *rand.Rand) []toxic {
		most := []int{1, 50, 2000, 30_000}
		return []toxic{{"limit_data", to, map[string]int{"bytes": r.IntN(most[r.IntN(len(most))])}}}
	}
}
