package access_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

const someHash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// writeTemp returns the path of a new auth file with this text.
func writeTemp(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.json")
	write(t, path, text)
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// addKey adds a new key to the file and returns it and its secret.
func addKey(t *testing.T, path string, role access.Role, prefixes ...string) (access.Key, string) {
	t.Helper()
	k, secret, err := access.Issue("ci", role, prefixes, time.Time{})
	if err == nil {
		err = access.Add(path, k)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

// editedFile returns the text of a file with one key, in which a part is replaced.
func editedFile(part, other string) string {
	return strings.Replace(`{"keys": [
	{"id": "a1", "name": "ci", "role": "lock", "prefixes": ["billing"],
	 "created_at": "2026-01-02T03:04:05Z", "expires_at": "2027-01-02T03:04:05Z", "hash": "`+someHash+`"}
]}`, part, other, 1)
}

var wordsOfGo = regexp.MustCompile(` json: |jsontext|\bGo\b|unmarshal|EOF`)

func TestErrorsInTheFileAreNamed(t *testing.T) {
	t.Parallel()
	second := `{"id": "a1", "name": "other", "role": "read", "prefixes": [], "hash": "` + someHash + `"}`
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                      {"", "is empty"},
		"not JSON":                     {"keys:\n", "line 1: invalid character"},
		"a list":                       {"[]", "line 1"},
		"JSON cut off":                 {editedFile("\n]}", "\n"), "line 4: the JSON ends too early"},
		"more after the end":           {editedFile("\n]}", "\n]} {}"), "line 4"},
		"an unknown member":            {editedFile(`"name"`, `"owner": "me", "name"`), `"owner"`},
		"an unknown member at the top": {editedFile(`{"keys"`, `{"key": [], "keys"`), `"key"`},
		"a member in capitals":         {editedFile(`"role"`, `"Role"`), `"Role"`},
		"a member twice":               {editedFile(`"name": "ci"`, `"name": "ci", "name": "cd"`), `"name"`},
		"a key that is not an object":  {editedFile(`"keys": [`, `"keys": [7,`), "line 1"},
		"an unknown role":              {editedFile(`"lock"`, `"root"`), `keys[0] ("ci"): role`},
		"no role":                      {editedFile(`"role": "lock", `, ``), `keys[0] ("ci"): role`},
		"no id":                        {editedFile(`"id": "a1", `, ``), `keys[0] ("ci"): id`},
		"an invalid id":                {editedFile(`"a1"`, `"a_1"`), `keys[0] ("ci"): id`},
		"no name":                      {editedFile(`"name": "ci", `, ``), `keys[0] (""): name`},
		"no prefixes":                  {editedFile(`"prefixes": ["billing"],`, ``), `keys[0] ("ci"): prefixes: is missing`},
		"null for prefixes":            {editedFile(`["billing"]`, `null`), `keys[0] ("ci"): prefixes: is missing`},
		"a prefix with its last colon": {editedFile(`"billing"`, `"billing:"`), `keys[0] ("ci"): prefixes[0]: "billing:": omit the last colon`},
		"an invalid prefix":            {editedFile(`"billing"`, `"billing", "*"`), `keys[0] ("ci"): prefixes[1]`},
		"an invalid time":              {editedFile(`"2027-01-02T03:04:05Z"`, `"next year"`), "expires_at"},
		"an expiry before creation":    {editedFile(`2027`, `2025`), `keys[0] ("ci"): expires_at`},
		"no hash":                      {editedFile(`"hash": "`+someHash+`"`, `"hash": ""`), `keys[0] ("ci"): hash`},
		"a hash cut short":             {editedFile(someHash, someHash[:70]), `keys[0] ("ci"): hash`},
		"a hash of another kind":       {editedFile("sha256:", "md5:"), `keys[0] ("ci"): hash`},
		"an id twice":                  {editedFile("\n]}", ",\n"+second+"]}"), `keys[1] ("other"): id: a1`},
		"too large":                    {strings.Repeat(" ", access.MaxFileSize+1), "has more than"},
	} {
		path := writeTemp(t, c.text)
		keys, err := access.ReadFile(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || len(keys) > 0 {
			t.Errorf("%s: %v, %v, want %q", name, keys, err, c.want)
		} else if wordsOfGo.MatchString(err.Error()) {
			t.Errorf("%s: the error speaks of Go: %v", name, err)
		}
		if _, err := access.Open(path, nil); err == nil {
			t.Errorf("%s: Open accepts it", name)
		}
		if err := access.Add(path, access.Key{ID: "b", Name: "b", Role: access.Read}); err == nil || c.text != "" && content(t, path) != c.text {
			t.Errorf("%s: Add changed it (%v)", name, err)
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWrittenKeysAreReadBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	var want []access.Key
	for i, role := range []access.Role{access.Read, access.Lock, access.Admin} {
		k, _, err := access.Issue(fmt.Sprintf("<%d> & \"é\"", i), role, []string{"a", "b:c"}[:i], time.Now().AddDate(i, 0, 1))
		if err == nil {
			err = access.Add(path, k)
		}
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, k)
	}
	same := cmp.Options{cmpopts.IgnoreUnexported(access.Key{}), cmpopts.EquateEmpty()}
	got, err := access.ReadFile(path)
	if diff := cmp.Diff(want, got, same); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	if err := access.Add(path, want[1]); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a duplicate id: %v", err)
	}
	revoked, err := access.Revoke(path, want[1].ID)
	if diff := cmp.Diff(want[1], revoked, same); err != nil || diff != "" {
		t.Errorf("revoke: %v\n%s", err, diff)
	}
	if _, err := access.Revoke(path, want[1].ID); !errors.Is(err, access.ErrKeyNotFound) {
		t.Errorf("revoke again: %v", err)
	}
	got, err = access.ReadFile(path)
	if diff := cmp.Diff(slices.Delete(want, 1, 2), got, same); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestConcurrentChangesAreNotLost(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	first, _ := addKey(t, path, access.Read)
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			k, _, err := access.Issue("ci", access.Read, nil, time.Time{})
			if err == nil {
				err = access.Add(path, k)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		if _, err := access.Revoke(path, first.ID); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if keys, err := access.ReadFile(path); err != nil || len(keys) != 30 {
		t.Errorf("%d keys, want 30 (%v)", len(keys), err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("temporary files are left: %v (%v)", left, err)
	}
}

func TestFileKeepsItsPermissions(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	_, _ = addKey(t, path, access.Read)
	for before, want := range map[os.FileMode]os.FileMode{0o600: 0o600, 0o640: 0o640, 0o664: 0o640, 0o644: 0o640, 0o400: 0o600} {
		if err := os.Chmod(path, before); err != nil {
			t.Fatal(err)
		}
		_, _ = addKey(t, path, access.Read)
		if about, err := os.Stat(path); err != nil || about.Mode().Perm() != want {
			t.Errorf("after %v it has %v (%v), want %v", before, about.Mode(), err, want)
		}
	}
	if err := os.Chmod(path, 0o602); err != nil {
		t.Fatal(err)
	}
	if _, err := access.ReadFile(path); err == nil || !strings.Contains(err.Error(), "chmod o-w "+path) {
		t.Errorf("every user may write it: %v", err)
	}
}

func TestSymbolicLinkIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "real.json")
	_, _ = addKey(t, path, access.Read)
	link := filepath.Join(t.TempDir(), "keys.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	_, _ = addKey(t, link, access.Read)
	if to, err := os.Readlink(link); err != nil || to != path {
		t.Errorf("the link leads to %q (%v)", to, err)
	}
	if keys, err := access.ReadFile(path); err != nil || len(keys) != 2 {
		t.Errorf("%d keys are behind the link (%v)", len(keys), err)
	}
}

func FuzzAuthFile(f *testing.F) {
	f.Add(editedFile("", ""))
	f.Add(`{"keys": []}`)
	f.Add(`{"keys": [{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := access.Parse([]byte(text))
		if err != nil {
			return
		}
		for _, k := range keys {
			if k.Role == 0 || k.ID == "" || k.Name == "" {
				t.Fatalf("%q was read as %+v", text, k)
			}
		}
		again, err := access.Render(keys)
		if err != nil {
			t.Fatal(err)
		}
		reread, err := access.Parse(again)
		if diff := cmp.Diff(keys, reread, cmpopts.IgnoreUnexported(access.Key{}), cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(0)); err != nil || diff != "" {
			t.Fatalf("%v\n%s\n%s", err, diff, again)
		}
	})
}

func FuzzSecret(f *testing.F) {
	path := filepath.Join(f.TempDir(), "keys.json")
	k, secret, err := access.Issue("ci", access.Admin, nil, time.Time{})
	if err = errors.Join(err, access.Add(path, k)); err != nil {
		f.Fatal(err)
	}
	r, err := access.Open(path, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(r.Close)
	f.Add(secret[:len(secret)-1])
	f.Add("pk_" + k.ID + "_")
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := r.Find(text); text != secret && (!errors.Is(err, lock.ErrKeyInvalid) || k.ID != "") {
			t.Fatalf("%q found %v, %v", text, k, err)
		}
	})
}

func TestPipeIsNotAnAuthFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := access.ReadFile(path); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("ReadFile = %v", err)
	}
}
