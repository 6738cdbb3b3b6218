package lean_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/bench/lean"
)

func TestAllResponseFormats(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/length", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "short") })
	mux.HandleFunc("/chunks", func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			fmt.Fprint(w, strings.Repeat("x", 5000))
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/trailer", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Mood")
		fmt.Fprint(w, strings.Repeat("y", 5000))
		w.Header().Set("Mood", "sunny")
	})
	mux.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/hint", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, "held")
	})
	mux.HandleFunc("/last", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "bye")
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Method, r.Header.Get("Content-Type"), r.Header.Get("Mood"), string(body), err)
	})
	c := dial(t, mux)
	for range 2 { // over a used connection, and over a new one after /last
		for path, want := range map[string]string{
			"/length":  "200 short",
			"/chunks":  "200 " + strings.Repeat("x", 15000),
			"/trailer": "200 " + strings.Repeat("y", 5000),
			"/none":    "204 ",
			"/hint":    "409 held",
			"/last":    "200 bye",
			"/echo":    "200 POSTapplication/jsongood{}<nil>",
			"/missing": "404 404 page not found\n",
		} {
			status, body, err := c.Post(t.Context(), path, []byte("{}"))
			if got := fmt.Sprintf("%d %s", status, body); err != nil || got != want {
				t.Errorf("%s: got %.40q, %v", path, got, err)
			}
		}
	}
	if _, body, err := c.Do(t.Context(), "GET", "/echo", nil); err != nil || string(body) != "GETgood<nil>" {
		t.Errorf("GET: got %q, %v", body, err)
	}
}

func TestAnEndedContextAbortsTheRequest(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	disconnected := make(chan struct{})
	c := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			_, _ = io.Copy(io.Discard, r.Body) // the server detects a disconnect only after reading the body
			close(arrived)
			<-r.Context().Done()
			close(disconnected)
		}
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, _, err := c.Post(ctx, "/wait", []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-disconnected
	if status, _, err := c.Post(t.Context(), "/", nil); status != http.StatusOK || err != nil {
		t.Errorf("the next request: %d, %v", status, err)
	}
}

func TestField(t *testing.T) {
	t.Parallel()
	const json = `{"header":{"revision":"12","raft_term":2},"note":"token","token":7,"key":"YQ=="}`
	for name, want := range map[string]string{"revision": "12", "raft_term": "2", "token": "7", "key": "YQ==", "missing": ""} {
		if got := string(lean.Field([]byte(json), name)); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func dial(t *testing.T, h http.Handler) *lean.Conn {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c := lean.New(server.Listener.Addr().String(), "Mood: good\r\n")
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
