package server

import (
	"github.com/go-chi/chi/v5"

	"github.com/paddock-lock/paddock/lock"
)

// What the tests of this package see of its inside.

const (
	HeaderTimeout = headerTimeout
	MaxHeaderSize = maxHeaderSize
	MaxConcurrent = maxConcurrent

	ReadTimeout = readTimeout
	MaxDrain    = maxDrain
	DrainMargin = drainMargin

	MaxLargeBatches = maxLargeBatches

	WriteTimeout = writeTimeout
	KeepAlive    = keepAlive
	StreamPage   = streamPage
	StreamTries  = streamTries
	StreamPause  = streamPause
)

func (s *Server) Routes() chi.Routes { return s.router }

func Statuses() map[lock.Code]int {
	statuses := make(map[lock.Code]int, len(refusals))
	for code, r := range refusals {
		statuses[code] = r.status
	}
	return statuses
}

func Parameters() map[string][]string { return parameters }
