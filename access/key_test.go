package access_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
)

func TestPrefixCoversItsNameAndNamesUnderIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		prefixes []string
		text     string
		name     bool // the text is covered as a name
		all      bool // all names that begin with the text are covered
	}{
		{nil, "anything", true, true},
		{nil, "", true, true},
		{[]string{"billing"}, "billing", true, false},
		{[]string{"billing"}, "billing:", true, true},
		{[]string{"billing"}, "billing:eu", true, true},
		{[]string{"billing"}, "billing:eu:de", true, true},
		{[]string{"billing"}, "billing2", false, false},
		{[]string{"billing"}, "billing-2:x", false, false},
		{[]string{"billing"}, "billin", false, false},
		{[]string{"billing"}, "Billing:x", false, false},
		{[]string{"billing"}, "x:billing:y", false, false},
		{[]string{"billing"}, "", false, false},
		{[]string{"a:b"}, "a", false, false},
		{[]string{"a:b"}, "a:", false, false},
		{[]string{"a:b"}, "a:b", true, false},
		{[]string{"a:b"}, "a:b:c", true, true},
		{[]string{"a:b"}, "a:bc", false, false},
		{[]string{"billing", "jobs"}, "jobs:nightly", true, true},
		{[]string{"billing", "billing:eu"}, "billing:eu", true, true},
	} {
		k := access.Key{Prefixes: c.prefixes}
		if got := k.Covers(c.text); got != c.name {
			t.Errorf("%q, the name %q: %t, want %t", c.prefixes, c.text, got, c.name)
		}
		if got := k.CoversAll(c.text); got != c.all {
			t.Errorf("%q, all that begin with %q: %t, want %t", c.prefixes, c.text, got, c.all)
		}
	}
}

func TestRoleNames(t *testing.T) {
	t.Parallel()
	for role, name := range map[access.Role]string{access.Read: "read", access.Lock: "lock", access.Admin: "admin"} {
		if role.String() != name || access.RoleOf(name) != role {
			t.Errorf("%s is %s, and %d is %d", name, role, role, access.RoleOf(name))
		}
	}
	for _, text := range []string{"", "none", "Read", "root", "admin ", "1"} {
		if got := access.RoleOf(text); got != 0 {
			t.Errorf("%q is the role %s", text, got)
		}
	}
	if access.Role(0).String() != "none" || access.Role(4).String() != "none" || access.Role(-1).String() != "none" {
		t.Error("an unknown role has a name")
	}
}

func TestSecretsAreLongAndUnique(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		k, secret, err := access.Issue("ci", access.Lock, nil, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		id, ok := access.KeyID(secret)
		if !ok || id != k.ID || len(secret) != len("pk__")+len(id)+43 || seen[k.ID] || seen[secret] {
			t.Fatalf("id %s of %s: %q, %t", k.ID, secret, id, ok)
		}
		seen[k.ID], seen[secret] = true, true
	}
}

func TestMalformedSecretsHaveNoID(t *testing.T) {
	t.Parallel()
	random := strings.Repeat("x", 43)
	for _, text := range []string{
		"", "pk_", "pk__" + random, "pk_abc", "pk_abc_", "pk_abc_" + random[1:], "pk_abc_" + random + "x", "pk_ABC_" + random,
		"sk_abc_" + random, " pk_abc_" + random, "pk_a-c_" + random, "pk_" + strings.Repeat("a", 33) + "_" + random,
	} {
		if id, ok := access.KeyID(text); ok {
			t.Errorf("%q has the id %q", text, id)
		}
	}
}

func TestIssueRefusesInvalidKeys(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		name     string
		role     access.Role
		prefixes []string
		expires  time.Time
		want     string
	}{
		"no name":                  {"", access.Read, nil, later, "name:"},
		"a name of two lines":      {"a\nb", access.Read, nil, later, "name:"},
		"a name that is not UTF-8": {"\xff", access.Read, nil, later, "name:"},
		"a name that is too long":  {strings.Repeat("é", 101), access.Read, nil, later, "name:"},
		"no role":                  {"ci", 0, nil, later, "role:"},
		"an unknown role":          {"ci", 4, nil, later, "role:"},
		"a prefix with its colon":  {"ci", access.Read, []string{"a", "billing:"}, later, "prefixes[1]"},
		"an empty prefix":          {"ci", access.Read, []string{""}, later, "prefixes[0]"},
		"a wildcard prefix":        {"ci", access.Read, []string{"*"}, later, "prefixes[0]"},
		"a prefix with a slash":    {"ci", access.Read, []string{"a/b"}, later, "prefixes[0]"},
		"an expiry in the past":    {"ci", access.Read, nil, time.Now().Add(-time.Hour), "expires_at"},
	} {
		if _, _, err := access.Issue(c.name, c.role, c.prefixes, c.expires); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	k, _, err := access.Issue(strings.Repeat("é", 100), access.Admin, []string{"a:b"}, later)
	if err != nil || k.Expired(time.Now()) || !k.Expired(later) {
		t.Errorf("%v, expires at %v", err, k.ExpiresAt)
	}
}

func TestKeyDoesNotPrintItsHash(t *testing.T) {
	t.Parallel()
	k, _, err := access.Issue("ci", access.Lock, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("found", "key", k)
	hex, list := fmt.Sprintf("%x", k.Hash[:4]), strings.Trim(fmt.Sprintf("%d", k.Hash[:4]), "[]")
	for _, text := range []string{fmt.Sprint(k), fmt.Sprintf("%+v", k), fmt.Sprintf("%#v", k), fmt.Sprintf("%v", &k), logged.String()} {
		if !strings.Contains(text, k.ID) || strings.Contains(text, hex) || strings.Contains(text, list) {
			t.Errorf("prints as %s", text)
		}
	}
}
