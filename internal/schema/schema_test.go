package schema_test

import (
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/schema"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]schema.Name{
		"": schema.Default, "paddock": schema.Default, "team_a": "team_a", "_x9": "_x9", strings.Repeat("x", 40): schema.Name(strings.Repeat("x", 40)),
	} {
		if got, err := schema.Parse(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"Team", "9x", "team-a", "a.b", `a"b`, "a b", "ä", "x\n", strings.Repeat("x", 41), // not written without quotes
		"pg_catalog", "pg_x", "information_schema", "user", "table", // PostgreSQL's own
		"public", // everybody's
	} {
		if got, err := schema.Parse(text); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestStatements(t *testing.T) {
	t.Parallel()
	const text = `select pg_notify('paddock', paddock.f(x)) from paddock.records -- not my_paddock, paddock_fences or paddocks`
	s := schema.NewStatement(func() string { return text })
	for range 2 {
		for name, want := range map[schema.Name]string{
			"": text, "paddock": text,
			"a_b": `select pg_notify('a_b', a_b.f(x)) from a_b.records -- not my_paddock, paddock_fences or paddocks`,
			"c":   `select pg_notify('c', c.f(x)) from c.records -- not my_paddock, paddock_fences or paddocks`,
		} {
			if got := s.In(name); got != want {
				t.Errorf("%q: %s", name, got)
			}
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for name, want := range map[schema.Name]string{"": "", schema.Default: "", "team_b": " --schema team_b"} {
		if got := name.Flag(); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	keys := map[int64]schema.Name{}
	for _, name := range []schema.Name{schema.Default, "a", "b", "paddock2"} {
		for _, key := range []int64{name.Key(7), name.Key(8)} {
			if other, taken := keys[key]; taken || key < 0 {
				t.Errorf("%s has the key %d, as %q", name, key, other)
			}
			keys[key] = name
		}
	}
	if schema.Name("").Key(7) != 7 || schema.Default.Key(7) != 7 {
		t.Error("the default schema has another key")
	}
}
