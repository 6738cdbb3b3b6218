package faults_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// The readers of a round: as many streams as may be open, with each key as many as may.
const (
	streamKeys  = 5 // each with streamsEach
	streamsEach = 200
	// Of the streams of a key some are of readers who want to hear of everything and read
	// nothing: so many that share a connection of HTTP/2 with others, and so many that have one.
	deafTogether, deafAlone = 4, 2
	listeners               = floodStreams - streamKeys*(deafTogether+deafAlone)
)

func streamKey(i int) string { return fmt.Sprint("streams ", i) }

// Readers are those who follow events for a round.
type readers struct {
	*exposed
	name  string // of the lock whose events the listeners follow
	heard [listeners]atomic.Int64
	next  int          // listener
	deaf  []io.Closer  // connections of those who share none
	cut   atomic.Int64 // streams of those who share a connection and read nothing that the service has ended
	conns []io.Closer
	over  atomic.Bool // whether the connections are being closed
}

const all = "/v1/events/stream"

func (r *readers) news() string { return all + "?lock=" + r.name }

// come opens all streams, and returns when the listeners have been answered.
func (r *readers) come() {
	r.t.Helper()
	r.t.Cleanup(func() { r.over.Store(true) })
	for k := range streamKeys {
		key := streamKey(k)
		r.must(r.listenTogether(key))
		for range streamsEach - perWire - deafAlone {
			r.must(r.listenAlone(key))
		}
		for range deafAlone {
			r.must(r.beDeaf(key))
		}
		if k == 0 {
			r.isTooMuch(r.request(http.MethodGet, all, key, ""), "with this API key")
		}
	}
	r.isTooMuch(r.request(http.MethodGet, all, "late", ""), "The limit on open event streams is reached.")
	r.must(differ("listeners", r.next, listeners))
}

// beDeaf follows everything and reads nothing.
func (r *readers) beDeaf(key string) error {
	c, err := r.caller()
	if err != nil {
		return err
	}
	r.deaf = append(r.deaf, c)
	return errors.Join(small(c.Conn), c.say(r.request(http.MethodGet, all, key, "")))
}

// listenAlone follows the lock on a connection of its own.
func (r *readers) listenAlone(key string) error {
	c, err := r.caller()
	if err != nil {
		return err
	}
	r.conns = append(r.conns, c)
	if err := c.say(r.request(http.MethodGet, r.news(), key, "")); err != nil {
		return err
	}
	got, err := http.ReadResponse(c.in, nil)
	if err == nil && got.StatusCode != http.StatusOK {
		err = fmt.Errorf("a stream is answered %s", got.Status)
	}
	if err != nil {
		return err
	}
	heard := &r.heard[r.next]
	r.next++
	go func() {
		lines := bufio.NewScanner(got.Body)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "event: granted") {
				heard.Add(1)
			}
		}
		if !r.over.Load() {
			r.t.Errorf("a stream has ended: %v", lines.Err())
		}
	}()
	return nil
}

// listenTogether follows the lock in many streams of one connection, and everything in
// some of which nothing more is read than fits.
func (r *readers) listenTogether(key string) error {
	w, err := r.wire()
	if err != nil {
		return err
	}
	r.conns = append(r.conns, w)
	heard, deaf := map[uint32]*atomic.Int64{}, map[uint32]bool{}
	for i := range perWire {
		path := r.news()
		if i < deafTogether {
			path = all
		}
		stream, err := w.open(http.MethodGet, path, r.secrets[key], "", true)
		if err != nil {
			return err
		}
		if i < deafTogether {
			deaf[stream] = true
			continue
		}
		heard[stream] = &r.heard[r.next]
		r.next++
	}
	go func() {
		if err := r.listen(w, heard, deaf); !r.over.Load() {
			r.t.Errorf("a connection with streams has ended: %v", err)
		}
	}()
	return nil
}

func (r *readers) listen(w *wire, heard map[uint32]*atomic.Int64, deaf map[uint32]bool) error {
	for {
		f, err := w.next()
		switch {
		case err != nil:
			return err
		case f.kind == frameData && heard[f.stream] != nil:
			heard[f.stream].Add(int64(bytes.Count(f.payload, []byte("event: granted"))))
		case f.kind == frameReset && deaf[f.stream]:
			r.cut.Add(1)
		case f.kind == frameReset, f.kind == frameGoAway:
			return fmt.Errorf("stream %d is cut off", f.stream)
		}
	}
}

// tell has something happen, and waits until each listener has heard of it, once.
func (r *readers) tell(times int64) {
	r.t.Helper()
	locks, id := r.late, lock.LeaseID(uuid.New())
	_, err := locks.Acquire(r.t.Context(), lock.Acquire{Name: r.name, LeaseID: id, Holder: "the news"})
	r.must(err)
	r.must(locks.Release(r.t.Context(), lock.Release{Name: r.name, LeaseID: id}))
	r.comesTo(2*patience, func(figures) error {
		for i := range r.heard {
			if n := r.heard[i].Load(); n != times {
				return fmt.Errorf("listener %d has heard of %d grants, want %d", i, n, times)
			}
		}
		return nil
	})
}

// deafAreCutOff waits until the service has ended the streams that are not read, of those
// who share a connection. The connections of the others it must close, see isOver.
func (r *readers) deafAreCutOff() {
	r.t.Helper()
	r.comesTo(2*patience, func(figures) error {
		return differ("streams that were cut off", int(r.cut.Load()), streamKeys*deafTogether)
	})
}

// leave closes all connections but those of who reads nothing.
func (r *readers) leave() {
	r.over.Store(true)
	for _, c := range r.conns {
		_ = c.Close() // the service may have been first
	}
}
