package row

import (
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestTheLastTokenIsReadBeforeAnyIsDrawn: otherwise a look that draws many would hide that tokens were lost. The floor of
// a new lock is that token.
func TestTheLastTokenIsReadBeforeAnyIsDrawn(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	exec(t, conn, "select setval('paddock.fencing_tokens', 100)")
	for _, locks := range []bool{false, true} {
		exec(t, conn, "delete from paddock.records")
		v, err := Look{Names: []string{"new"}, Tokens: 10, Lock: locks}.Run(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, conn, "rollback")
		last := v.Epoch.LastToken
		if last == 0 || last%10 != 0 || v.Rows["new"].Floor != last || len(v.Tokens) != 10 || v.Tokens[0] != last+1 {
			t.Errorf("last token %d, tokens %v, floor %d; want 10 tokens above the last one, which is the floor",
				last, v.Tokens, v.Rows["new"].Floor)
		}
	}
}

// TestTokensDrawnForLaterMayBeFewer: at the end of the sequence, where those that are needed at once cannot be drawn.
func TestTokensDrawnForLaterMayBeFewer(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	exec(t, conn, "select setval('paddock.fencing_tokens', $1)", int64(lock.MaxToken)-3)
	v, err := Look{Names: []string{"a"}, Tokens: 1}.Run(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	s := &Swap{Now: v.Epoch.Now, Oldest: v.Epoch.Now, Epoch: v.Epoch, Draw: 64}
	s.Changes = []*Change{{Before: v.Rows["a"], After: v.Rows["a"].Record}}
	w, err := s.Run(t.Context(), conn)
	if err != nil || len(w.Tokens) != 2 || w.Tokens[1] != lock.MaxToken {
		t.Errorf("a swap has drawn %v, %v; want the last two", w.Tokens, err)
	}
	if tokens, err := Draw(t.Context(), conn, v.Epoch, 1); err == nil {
		t.Errorf("drawn %v after the last one", tokens)
	}
}
