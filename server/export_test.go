package server

import (
	"context"
	"runtime"
	"testing"
	"time"

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

	MaxLargeBatches = maxLargeBatches

	WriteTimeout      = writeTimeout
	KeepAliveInterval = keepAliveInterval
	StreamPage        = streamPageSize
	MaxStreamAttempts = maxStreamAttempts
	StreamRetryDelay  = streamRetryDelay

	MaxBlockText  = maxBlockText
	MaxFeedText   = maxFeedText
	MaxFeedBlocks = maxFeedBlocks

	StreamShare = streamShare
	CostOfTurn  = costOfTurn
	CostOfKByte = costOfKByte
)

func (s *Server) Routes() chi.Routes { return s.router }

func Statuses() map[lock.Code]int {
	statuses := make(map[lock.Code]int, len(refusals))
	for code, r := range refusals {
		statuses[code] = r.status
	}
	return statuses
}

// ExhaustStreams takes the time of a second that streams may take.
func ExhaustStreams(s *Server) {
	for range int(streamShare*float64(runtime.GOMAXPROCS(0)*int(time.Second/streamBurst))) + 1 {
		s.pace.took(streamBurst)
	}
}

// StreamBudget returns the time that streams may take now.
func StreamBudget(s *Server) time.Duration { return time.Duration(s.pace.budget.Tokens()) }

// Turns returns a function that waits for a turn, in which so many KiB are written.
func Turns() func(ctx context.Context, size int) error {
	p := newPacer()
	return func(ctx context.Context, size int) error {
		p.took(time.Duration(size) * costOfKByte)
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
