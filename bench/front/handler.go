package front

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/paddock-lock/paddock/bench/lease"
	"github.com/paddock-lock/paddock/bench/system"
)

// request is the body of every request.
type request struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	Wait bool   `json:"wait"`
}

// grant is the body of the answer to an acquire.
type grant struct {
	ID    string `json:"id"`
	Token int64  `json:"token"`
}

// handler returns a handler for the store.
func handler(store lease.Store) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /acquire", func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode(w, r)
		if !ok {
			return
		}
		g, err := acquire(r.Context(), store, in)
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(grant{ID: g.ID, Token: g.Token}) // fails only if the client has disconnected
	})
	mux.Handle("POST /renew", ending(store.Renew))
	mux.Handle("POST /release", ending(store.Release))
	return mux
}

// acquire acquires a lease, and releases it if the client has disconnected meanwhile.
func acquire(ctx context.Context, store lease.Store, in request) (lease.Grant, error) {
	g, err := store.Acquire(ctx, in.Name, in.Wait)
	if err == nil && ctx.Err() != nil {
		err = errors.Join(context.Cause(ctx), store.Release(context.WithoutCancel(ctx), in.Name, g.ID))
	}
	return g, err
}

// ending returns a handler for a call with a lease and without a result.
func ending(do func(ctx context.Context, name, id string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, ok := decode(w, r)
		if !ok {
			return
		}
		if err := do(r.Context(), in.Name, in.ID); err != nil {
			fail(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func decode(w http.ResponseWriter, r *http.Request) (in request, ok bool) {
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return in, false
	}
	return in, true
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, system.ErrHeld) || errors.Is(err, lease.ErrLost) {
		status = http.StatusConflict
	}
	http.Error(w, err.Error(), status)
}
