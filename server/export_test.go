package server

import (
	"sync/atomic"

	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/lock"
)

// What the tests of this package see of its inside.

const (
	HeaderTimeout = headerTimeout
	MaxHeaderSize = maxHeaderSize
	MaxHTTP2Streams = maxHTTP2Streams

	ReadTimeout = readTimeout
	MaxDrain    = maxDrain
	DrainMargin = drainMargin

	MaxLargeBatches = maxLargeBatches

	WriteTimeout = writeTimeout
	KeepAliveInterval    = keepAliveInterval
	StreamPage   = streamPage
	MaxStreamAttempts  = maxStreamAttempts
	StreamRetryDelay  = streamRetryDelay

	CachedEvents  = cachedEvents
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

// CountEncodings returns how many events s has encoded for its streams since then. It is called before s serves.
func CountEncodings(s *Server) *atomic.Int64 {
	count := new(atomic.Int64)
	s.events.encode = func(e lock.Event) []byte {
		count.Add(1)
		return sseEvent(e)
	}
	return count
}

// EventText returns the event as the streams of s tell it.
func EventText(s *Server, e lock.Event) []byte { return s.events.text(e) }

// PageTexts returns the page as the first that a stream of s tells.
func PageTexts(s *Server, p lock.Page[lock.Event], cursor string) (texts [][]byte, next string) {
	return (&sseEncoder{events: s.events}).encodePage(p, cursor)
}

func Parameters() map[string][]string { return parameters }
