package store_test

import (
	"errors"
	"testing"

	"github.com/paddock-lock/paddock/internal/pgversion"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/store"
)

// TestOpenRefusesAnOldServer uses a server that claims to be PostgreSQL 13.
func TestOpenRefusesAnOldServer(t *testing.T) {
	t.Parallel()
	for _, o := range []store.Options{{}, {TransactionPooling: true}} {
		s, err := store.Open(t.Context(), pgtest.ClaimVersion(t, pgtest.URL(t), 130023), o)
		if err == nil {
			s.Close()
		}
		var tooOld *pgversion.TooOldError
		if !errors.As(err, &tooOld) || tooOld.Version != 130023 {
			t.Errorf("got %v", err)
		}
	}
}
