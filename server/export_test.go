package server

import (
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

// EventText returns the event as the streams of s send it.
func EventText(s *Server, e lock.Event) []byte { return s.events.text(e) }

// PageTexts returns the page as the first that a stream of s sends.
func PageTexts(s *Server, p paddock.Page[lock.Event], cursor string) (texts [][]byte, next string) {
	return (&sseEncoder{events: s.events}).encodePage(p, cursor)
}

func Parameters() map[string][]string { return queryParameters }

func HasBody(method, route string) bool { return hasBody(method, route) }
