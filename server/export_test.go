package server

import (
	"sync/atomic"

	"github.com/go-chi/chi/v5"

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

	CachedEvents  = eventCacheSize
	MaxStreamText = maxStreamText
)

func (s *Server) Routes() chi.Routes { return s.router }

func Statuses() map[lock.Code]int {
	statuses := make(map[lock.Code]int, len(refusals))
	for code, r := range refusals {
		statuses[code] = r.status
	}
	return statuses
}

// CountEncodings returns a counter of events that s encodes from now on. Call it before s serves.
func CountEncodings(s *Server) *atomic.Int64 {
	count := new(atomic.Int64)
	s.events.encode = func(e lock.Event) []byte {
		count.Add(1)
		return sseEvent(e)
	}
	return count
}

// EventText returns the event as the streams of s send it.
func EventText(s *Server, e lock.Event) []byte { return s.events.text(e) }

// PageTexts returns the page as the first that a stream of s sends.
func PageTexts(s *Server, p lock.Page[lock.Event], cursor string) (texts [][]byte, next string) {
	return (&sseEncoder{events: s.events}).encodePage(p, cursor)
}

func Parameters() map[string][]string { return queryParameters }

func HasBody(method, route string) bool { return hasBody(method, route) }
