package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/server"
)

// TestConcurrentBodiesAreNotMixedUp sends different bodies from many clients, valid and invalid ones in turn, which
// are parsed with shared readers.
func TestConcurrentBodiesAreNotMixedUp(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: inMemory()})
	var clients sync.WaitGroup
	for client := range 16 {
		clients.Go(func() {
			for call := range 50 {
				name, holder, id := fmt.Sprintf("lock-%d-%d", client, call), strings.Repeat("h", 1+(client*7+call)%100), uuid.NewString()
				path := "/v1/locks/" + name + "/acquire"
				got := s.post(path, fmt.Sprintf(`{"holder": %q, "lease_id": %q, "metadata": {"n": %d}}`, holder, id, call))
				got.want(t, http.StatusCreated, map[string]any{"name": name, "holder": holder, "lease_id": id})
				if mine := fmt.Sprintf(`"metadata":{"n":%d}`, call); !strings.Contains(got.text, mine) {
					t.Errorf("%s, want %s", got.text, mine)
				}
				member := fmt.Sprintf("member-%d-%d", client, call)
				s.post(path, fmt.Sprintf(`{"holder": %q, %q: 1}`, holder, member)).want(t, http.StatusBadRequest, map[string]any{"pointer": "/" + member})
			}
		})
	}
	clients.Wait()
}
