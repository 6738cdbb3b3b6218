package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/access"
)

func TestKeyListContainsNoSecret(t *testing.T) {
	t.Parallel()
	file := map[string]string{"PADDOCK_AUTH_FILE": filepath.Join(t.TempDir(), "keys.json")}
	var secrets []string
	for _, args := range [][]string{
		{"--role=lock", "--prefix=billing", "--prefix=jobs:eu", "billing workers"}, {"--role=admin", "--expires=8h",
			"on\u202ecall"},
	} {
		code, stdout, stderr := call(t, file, append([]string{"key", "new"}, args...)...)
		if code != exitOK || strings.Count(stdout, "\n") != 1 || !strings.Contains(stderr, "Created the key") {
			t.Fatalf("exit code %d:\n%s%s", code, stdout, stderr)
		}
		secrets = append(secrets, strings.TrimSpace(stdout))
	}
	content, err := os.ReadFile(file["PADDOCK_AUTH_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	hashes := regexp.MustCompile(`[0-9a-f]{64}`).FindAllString(string(content), -1)
	code, table, _ := call(t, file, "key", "list")
	_, list, _ := call(t, file, "key", "list", "-o", "json")
	for _, secret := range append(append(hashes, secrets...), secrets[0][len(secrets[0])-43:]) {
		if strings.Contains(table+list, secret) || len(hashes) != 2 {
			t.Errorf("contains a secret, or one of %d hashes:\n%s%s", len(hashes), table, list)
		}
	}
	if code != exitOK || !strings.Contains(collapseSpaces(table), "billing workers  lock  billing jobs:eu  ") ||
		!strings.Contains(table, `on\u202ecall`) ||
		!strings.Contains(table, "(all names)") {
		t.Errorf("exit code %d:\n%s", code, table)
	}
	var shown []keyJSON
	if err := json.Unmarshal([]byte(list), &shown); err != nil || len(shown) != 2 || len(shown[0].Prefixes) != 2 ||
		shown[0].ExpiresAt != nil ||
		shown[1].ExpiresAt == nil || shown[1].Expired {
		t.Errorf("%v:\n%s", err, list)
	}
}

func TestKeyCommandErrorsAreExplained(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	key, secret, err := access.Issue("ci", access.Read, nil, time.Time{})
	if err = errors.Join(err, access.Add(path, key)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code int
		args []string
		want string
	}{
		"no such file":  {exitFailed, []string{"list", "--auth-file", path + "x"}, "no such file"},
		"an empty name": {exitUsage, []string{"new", "--auth-file", path, "--role=read", ""}, "name"},
		"an unknown id": {exitFailed, []string{"revoke", "--auth-file", path, "zzz"}, "no key with the id zzz"},
		"the key instead of its id": {exitUsage, []string{"revoke", "--auth-file", path, secret},
			"give only its id, " + key.ID},
		"a missing folder": {exitFailed, []string{"new", "--auth-file", "/nowhere/at/all", "--role=read", "x"},
			"/nowhere/at"},
	} {
		code, stdout, stderr := call(t, nil, append([]string{"key"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) || strings.Contains(stderr, secret) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", name, code, c.code, c.want, stdout, stderr)
		}
	}
	if keys, err := access.ReadFile(path); err != nil || len(keys) != 1 {
		t.Errorf("%d keys are left (%v)", len(keys), err)
	}
}

// TestKeyGivenAsAnArgumentIsNotPrinted matters where output goes into the logs of a CI.
func TestKeyGivenAsAnArgumentIsNotPrinted(t *testing.T) {
	t.Parallel()
	key, secret, err := access.Issue("ci", access.Read, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"list", "--key-file"}, {"watch", "--key-file"}, {"key", "list", "--auth-file"}, {"key", "new", "--role=read", "ci",
			"--auth-file"},
		{"key", "revoke", key.ID, "--auth-file"}, {"serve", "--database-url=postgres://nobody@127.0.0.1:1/nothing",
			"--auth-file"},
		{"key", "revoke", "--auth-file=" + filepath.Join(t.TempDir(), "keys.json")},
	} {
		for _, shown := range []string{secret, secret + " ", " " + secret + "\n", secret[:len(secret)-5], secret + "x"} {
			code, stdout, stderr := call(t, nil, append(args, shown)...)
			if code != exitUsage || strings.Contains(stdout+stderr, secret[:len(secret)-20]) ||
				!strings.Contains(stderr, "other users of the machine") {
				t.Errorf("%q and a key: exit code %d:\n%s%s", args, code, stdout, stderr)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "pk_billing_workers_in_the_north_of_europe")
	if err := access.Add(path, key); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, nil, "key", "list", "--auth-file", path); code != exitOK {
		t.Errorf("a file that is called so: exit code %d:\n%s", code, stderr)
	}
}

func TestKeyThatCannotBePrintedIsRevoked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	code := run(t.Context(), []string{"key", "new", "--auth-file", path, "--role=read", "ci"}, variablesOf(nil),
		failingWriter{}, t.Output())
	if keys, err := access.ReadFile(path); code != exitFailed || err != nil || len(keys) != 0 {
		t.Errorf("exit code %d, and %d keys (%v)", code, len(keys), err)
	}
}

// A failingWriter is an output that cannot be written to.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// TestConcurrentProcessesCreateKeys uses processes, since goroutines could share a mutex.
func TestConcurrentProcessesCreateKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	var all []*process
	for range 8 {
		all = append(all, start(t, "key", "new", "--auth-file", path, "--role=read", "ci"))
	}
	for _, p := range all {
		if code := p.Exit(t); code != exitOK {
			t.Errorf("exit code %d:\n%s", code, p.Stderr)
		}
	}
	if keys, err := access.ReadFile(path); err != nil || len(keys) != len(all) {
		t.Errorf("%d keys of %d (%v)", len(keys), len(all), err)
	}
}

func TestKeyIsReadFromAFileOrTheEnvironment(t *testing.T) {
	t.Parallel()
	h := newKeyedReplica(t)
	k := h.newLoadedKey(access.Lock, "demo")
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(k.secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		"in the environment":      {map[string]string{"PADDOCK_KEY": k.secret}, nil, exitOK, ""},
		"in a file":               {nil, []string{"--key-file", path}, exitOK, ""},
		"in a file of a variable": {map[string]string{"PADDOCK_KEY_FILE": path, "PADDOCK_KEY": "x"}, nil, exitOK, ""},
		"nowhere":                 {nil, nil, exitNotAllowed, "PADDOCK_KEY"},
		"in a missing file":       {nil, []string{"--key-file", path + "x"}, exitUsage, "--key-file: "},
		"in a file without a key": {nil, []string{"--key-file", h.keys}, exitUsage, "does not contain an API key"},
		"in an empty file":        {nil, []string{"--key-file", os.DevNull}, exitUsage, "is empty"},
		"with other text": {map[string]string{"PADDOCK_KEY": "Bearer " + k.secret}, nil, exitUsage,
			"PADDOCK_KEY does not contain an API key"},
		"mistyped": {map[string]string{"PADDOCK_KEY": k.secret[:len(k.secret)-2] + "xx"}, nil, exitNotAllowed,
			"key_invalid"},
		"as an argument":      {nil, []string{"--key", k.secret}, exitUsage, "--key-file"},
		"as another argument": {nil, []string{k.secret}, exitUsage, "(an API key, not repeated here)"},
	} {
		code, stdout, stderr := call(t, c.env, append([]string{"list", "--url", h.base, "--prefix=demo:"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Contains(stdout+stderr, k.secret) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", name, code, c.code, c.want, stdout, stderr)
		}
	}
	if code, _, stderr := call(t, map[string]string{"PADDOCK_KEY": k.secret}, "acquire", "other", "--url",
		h.base); code != exitNotAllowed {
		t.Errorf("a lock of others: exit code %d:\n%s", code, stderr)
	}
}
