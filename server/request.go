package server

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
)

// A request is the context of a request, with all that is known of it, in one piece: each
// value that is put into a context apart would copy the http.Request, too. It does not
// hold what the answer is written to, since a timer may hold it for a while after that.
type request struct {
	context.Context // of the client and the Server alone; the key is in there once it is known
	route           *chi.Context
	decoders        *sync.Pool // of *wire.Decoder
	id              [1]string  // the values of a header
}

type requestKey struct{}

// Value returns q for a requestKey, and for chi the context that it routes with: chi
// looks for one, and has a context of its own only where there is none.
func (q *request) Value(key any) any {
	switch key {
	case requestKey{}:
		return q
	case chi.RouteCtxKey:
		return q.route
	}
	return q.Context.Value(key)
}

// requestOf returns the request that r has for a context, nil before ServeHTTP.
func requestOf(r *http.Request) *request {
	q, _ := r.Context().Value(requestKey{}).(*request)
	return q
}

// requestID returns the id that ServeHTTP gave to the request, empty before that.
func requestID(r *http.Request) string {
	if q := requestOf(r); q != nil {
		return q.id[0]
	}
	return ""
}

// clientContext returns the context of a request that ends with the client and the Server
// alone, without the limit if it was limited.
func clientContext(r *http.Request) context.Context {
	if q := requestOf(r); q != nil {
		return q
	}
	return r.Context()
}

// newRequestID returns a random UUID. It need not be one that nobody could guess.
func newRequestID() string {
	id := uuid.UUID{}
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id.String()
}
