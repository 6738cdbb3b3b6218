package access_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// A fixture is a Keyring in a synctest bubble, with its file and its log.
type fixture struct {
	*testing.T
	*access.Keyring
	path string
	log  proctest.Transcript
}

// inBubble runs the test with a Keyring that has one key with the role lock.
func inBubble(t *testing.T, test func(r *fixture, k access.Key, secret string)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &fixture{T: t, path: filepath.Join(t.TempDir(), "keys.json")}
		k, secret := addKey(t, r.path, access.Lock)
		var err error
		if r.Keyring, err = access.Open(r.path, slog.New(slog.NewTextHandler(&r.log, nil))); err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		test(r, k, secret)
	})
}

// waitForReload returns after the Keyring has reloaded the file.
func (r *fixture) waitForReload() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

func (r *fixture) finds(secret string) access.Key {
	r.Helper()
	k, err := r.Find(secret)
	if err != nil {
		r.Error(err)
	}
	return k
}

func (r *fixture) refuses(secret string, code lock.Code) {
	r.Helper()
	if k, err := r.Find(secret); !errors.Is(err, code) || k.ID != "" {
		r.Errorf("found %v, %v, want %s", k, err, code)
	}
}

func TestKeyIsFoundOnlyByItsSecret(t *testing.T) {
	inBubble(t, func(r *fixture, k access.Key, secret string) {
		if found := r.finds(secret); found.ID != k.ID || found.Role != access.Lock || found.Name != "ci" {
			t.Errorf("found %+v", found)
		}
		said := map[string]bool{}
		last := string(secret[len(secret)-1] ^ 1)
		for _, wrong := range []string{
			"", "pk_", k.ID, secret[:len(secret)-1], secret[:len(secret)-1] + last, secret + "=", " " + secret, strings.ToUpper(secret),
			strings.Replace(secret, k.ID, "zzzzzzzzzz", 1), strings.Repeat("x", 1<<16), "pk_" + k.ID + "_" + strings.Repeat("A", 43),
		} {
			_, err := r.Find(wrong)
			r.refuses(wrong, lock.ErrKeyInvalid)
			said[err.Error()] = true
		}
		if len(said) != 1 {
			t.Errorf("the answers differ: %v", said)
		}
	})
}

func TestKeyIsValidUntilItExpires(t *testing.T) {
	inBubble(t, func(r *fixture, _ access.Key, _ string) {
		k, secret, err := access.Issue("temp", access.Read, nil, time.Now().Add(time.Hour))
		if err == nil {
			err = access.Add(r.path, k)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.waitForReload()
		r.finds(secret)
		time.Sleep(time.Until(k.ExpiresAt) - time.Nanosecond)
		r.finds(secret)
		time.Sleep(time.Nanosecond)
		r.refuses(secret, lock.ErrKeyExpired)
		r.refuses("pk_"+k.ID+"_"+strings.Repeat("A", 43), lock.ErrKeyInvalid)
	})
}

func TestChangedFileIsReloaded(t *testing.T) {
	inBubble(t, func(r *fixture, first access.Key, firstSecret string) {
		second, secondSecret := addKey(t, r.path, access.Read, "billing")
		r.refuses(secondSecret, lock.ErrKeyInvalid)
		r.waitForReload()
		if k := r.finds(secondSecret); k.Role != access.Read || len(k.Prefixes) != 1 {
			t.Errorf("found %+v", k)
		}
		r.finds(firstSecret)
		if _, err := access.Revoke(r.path, first.ID); err != nil {
			t.Fatal(err)
		}
		r.waitForReload()
		r.refuses(firstSecret, lock.ErrKeyInvalid)
		if k := r.finds(secondSecret); k.ID != second.ID {
			t.Errorf("found %+v", k)
		}
		if log := r.log.String(); !strings.Contains(log, first.ID) || strings.Contains(log, firstSecret) || strings.Contains(log, secondSecret) {
			t.Errorf("logged:\n%s", log)
		}
	})
}

func TestMalformedFileChangesNothing(t *testing.T) {
	inBubble(t, func(r *fixture, _ access.Key, secret string) {
		good := content(t, r.path)
		for name, spoil := range map[string]func() error{
			"malformed":             func() error { return os.WriteFile(r.path, []byte(`{"keys": [`), 0o600) },
			"empty":                 func() error { return os.Truncate(r.path, 0) },
			"gone":                  func() error { return os.Remove(r.path) },
			"for everybody to edit": func() error { return os.Chmod(r.path, 0o666) },
		} {
			before := len(r.log.String())
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			r.waitForReload()
			r.waitForReload()
			r.finds(secret)
			if n := strings.Count(r.log.String()[before:], "level=ERROR"); n != 1 {
				t.Errorf("%s: %d errors are logged:\n%s", name, n, &r.log)
			}
			if err := os.RemoveAll(r.path); err != nil {
				t.Fatal(err)
			}
			write(t, r.path, good)
			r.waitForReload()
			if !strings.Contains(r.log.String()[before:], "is valid again") {
				t.Errorf("%s: the recovery is not logged:\n%s", name, &r.log)
			}
		}
	})
}

// TestReplacedLinkIsFollowed replaces a symbolic link in the middle of the path, as Kubernetes does for mounted
// secrets.
func TestReplacedLinkIsFollowed(t *testing.T) {
	inBubble(t, func(r *fixture, _ access.Key, _ string) {
		mount := t.TempDir()
		var secrets []string
		for _, version := range []string{"..1", "..2"} {
			if err := os.Mkdir(filepath.Join(mount, version), 0o755); err != nil {
				t.Fatal(err)
			}
			_, secret := addKey(t, filepath.Join(mount, version, "keys.json"), access.Read)
			secrets = append(secrets, secret)
		}
		data, path := filepath.Join(mount, "..data"), filepath.Join(mount, "keys.json")
		if err := errors.Join(os.Symlink("..1", data), os.Symlink("..data/keys.json", path)); err != nil {
			t.Fatal(err)
		}
		mounted := &fixture{T: t}
		var err error
		if mounted.Keyring, err = access.Open(path, nil); err != nil {
			t.Fatal(err)
		}
		defer mounted.Close()
		mounted.finds(secrets[0])
		mounted.refuses(secrets[1], lock.ErrKeyInvalid)
		if err := errors.Join(os.Symlink("..2", data+"_tmp"), os.Rename(data+"_tmp", data)); err != nil {
			t.Fatal(err)
		}
		mounted.waitForReload()
		mounted.refuses(secrets[0], lock.ErrKeyInvalid)
		mounted.finds(secrets[1])
	})
}

func TestWorldReadableFileIsLoggedAsAWarning(t *testing.T) {
	inBubble(t, func(r *fixture, _ access.Key, secret string) {
		if err := os.Chmod(r.path, 0o644); err != nil {
			t.Fatal(err)
		}
		var log proctest.Transcript
		open, err := access.Open(r.path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer open.Close()
		if _, err := open.Find(secret); err != nil || !strings.Contains(log.String(), "level=WARN") || strings.Contains(r.log.String(), "level=WARN") {
			t.Errorf("%v\n%s%s", err, &log, &r.log)
		}
	})
}
