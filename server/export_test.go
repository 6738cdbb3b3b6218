package server

import (
	"context"
	"runtime"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// What the tests see of the package's internals.

const (
	HeaderTimeout   = headerTimeout
	MaxHeaderSize   = maxHeaderSize
	MaxHTTP2Streams = maxHTTP2Streams

	ReadTimeout = readTimeout
	MaxDrain    = maxDrain
	DrainMargin = drainMargin

	MaxLargeBodies = maxLargeBodies

	WriteTimeout      = writeTimeout
	KeepAliveInterval = keepAliveInterval
	StreamPage        = streamPageSize
	MaxStreamAttempts = maxStreamAttempts
	StreamRetryDelay  = streamRetryDelay

	MaxBlockText  = maxBlockText
	MaxFeedText   = maxFeedText
	MaxFeedBlocks = maxFeedBlocks

	StreamKBytes = streamKBytes
	TurnKBytes   = turnKBytes
)

func (s *Server) Routes() chi.Routes { return s.router }

func Statuses() map[lock.Code]int {
	statuses := make(map[lock.Code]int, len(refusals))
	for code, r := range refusals {
		statuses[code] = r.status
	}
	return statuses
}

// ExhaustStreams takes what streams may write in a second.
func ExhaustStreams(s *Server) {
	for range streamKBytes*runtime.GOMAXPROCS(0)/spareKBytes + 1 {
		s.pace.took(spareKBytes)
	}
}

// StreamBudget returns how many KiB streams may write now.
func StreamBudget(s *Server) int { return int(s.pace.budget.Tokens()) }

// Turns returns a function that waits for a turn, in which so many KiB are written.
func Turns() func(ctx context.Context, size int) error {
	p := newPacer()
	return func(ctx context.Context, size int) error {
		p.took(size)
		return p.turn(ctx)
	}
}

func Parameters() map[string][]string { return queryParameters }

func HasBody(method, route string) bool { return hasBody(method, route) }

// FeedOf returns how many blocks a feed has of the pages, and how many of them are live.
func FeedOf(t *testing.T, pages ...paddock.Page[lock.Event]) (live, blocks int) {
	f := &feed{more: make(chan struct{})}
	for _, p := range pages {
		if err := f.add(p, maxFeedText); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range f.blocks {
		if b.live {
			live++
		}
	}
	return live, len(f.blocks)
}
