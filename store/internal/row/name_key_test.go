package row

import (
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
)

// TestNameKeyIsThatOfTheDatabase compares NameKey with paddock.name_key, with which operators find the events of a
// lock.
func TestNameKeyIsThatOfTheDatabase(t *testing.T) {
	t.Parallel()
	conn := pgtest.Conn(t)
	for _, name := range []string{"", "a", "jobs:nightly", `"ünï\`, "漢字 \U0001F600", strings.Repeat("x", 200)} {
		var key int64
		if err := conn.QueryRow(t.Context(), "select paddock.name_key($1)", name).Scan(&key); err != nil {
			t.Fatal(err)
		}
		if key != NameKey(name) || key < 0 {
			t.Errorf("the key of %q is %d in the database and %d in Go", name, key, NameKey(name))
		}
	}
}
