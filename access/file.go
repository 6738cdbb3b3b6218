package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxFileSize is the greatest size of an auth file, in bytes: some ten thousand keys.
const MaxFileSize = 4 << 20

// hashPrefix names the algorithm of a hash in the file.
const hashPrefix = "sha256:"

// An authFile is the JSON of the auth file.
type authFile struct {
	Keys []authFileKey `json:"keys"`
}

// An authFileKey is one key of an authFile. Prefixes is nil if the member is missing.
type authFileKey struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	Prefixes  *[]string `json:"prefixes"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Hash      string    `json:"hash"`
}

// ReadFile returns the keys in the auth file, in their order:
//
//	{"keys": [{
//	  "id": "k3f9a2xyqw", "name": "billing workers", "role": "lock", "prefixes": ["billing"],
//	  "created_at": "2026-01-02T03:04:05Z", "expires_at": "2027-01-02T03:04:05Z",
//	  "hash": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
//	}]}
//
// All members except the times are required; prefixes may be [], for all names. It returns an error with the location
// for a malformed file or a duplicate id, and an error for a file that is writable by every user.
func ReadFile(path string) ([]Key, error) {
	file, err := readContent(path)
	if err != nil {
		return nil, err
	}
	keys, err := parse(file.bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

// A fileContent is the text and mode of a file.
type fileContent struct {
	bytes []byte
	mode  fs.FileMode
}

func readContent(path string) (_ fileContent, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openWithoutWaiting, 0) // otherwise opening a named pipe would block
	if err != nil {
		return fileContent{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return fileContent{}, err
	}
	if !info.Mode().IsRegular() {
		return fileContent{}, fmt.Errorf("%s is not a regular file", path)
	}
	if writableByAll(info) {
		return fileContent{}, fmt.Errorf("%s is writable by every user of this machine, who could add keys: run chmod o-w %s",
			path, path)
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err == nil && len(content) > MaxFileSize {
		err = fmt.Errorf("%s has more than %d bytes", path, MaxFileSize)
	}
	return fileContent{content, info.Mode()}, err
}

// parse returns the keys in the file's text.
func parse(content []byte) ([]Key, error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, errors.New(`is empty; write {"keys": []} for no keys`)
	}
	var file authFile
	if err := json.Unmarshal(content, &file, json.RejectUnknownMembers(true)); err != nil {
		return nil, withLineNumber(content, err)
	}
	keys, first := make([]Key, 0, len(file.Keys)), map[string]int{}
	for i, one := range file.Keys {
		k, err := one.key()
		if err != nil {
			return nil, fmt.Errorf("keys[%d] (%q): %w", i, one.Name, err)
		}
		if before, twice := first[k.ID]; twice {
			return nil, fmt.Errorf("keys[%d] (%q): id: %s is also the id of keys[%d]", i, k.Name, k.ID, before)
		}
		first[k.ID], keys = i, append(keys, k)
	}
	return keys, nil
}

// What an error of the JSON package says in terms of Go.
var (
	wordsOfGo = regexp.MustCompile(`\bjson(?:text)?: |(?:cannot|unable to) unmarshal JSON \w+ (unknown)| into Go \S+| after offset \d+`)
	misplaced = regexp.MustCompile(`(?:cannot|unable to) unmarshal JSON (\w+)`)
)

// withLineNumber returns what is wrong with the JSON, and in which line.
func withLineNumber(content []byte, err error) error {
	var offset int64
	if s := (*jsontext.SyntacticError)(nil); errors.As(err, &s) {
		offset = s.ByteOffset
	}
	if s := (*json.SemanticError)(nil); errors.As(err, &s) {
		offset = s.ByteOffset
	}
	line := 1 + bytes.Count(content[:min(max(offset, 0), int64(len(content)))], []byte("\n"))
	text := err.Error()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		text = "the JSON ends too early"
	}
	return fmt.Errorf("line %d: %s", line, misplaced.ReplaceAllString(wordsOfGo.ReplaceAllString(text, "$1"), "a JSON $1 cannot be here"))
}

func (w authFileKey) key() (Key, error) {
	k := Key{ID: w.ID, Name: w.Name, Role: RoleOf(w.Role), CreatedAt: w.CreatedAt, ExpiresAt: w.ExpiresAt}
	if w.Prefixes == nil {
		return k, errors.New("prefixes: is missing; use [] for all names")
	}
	k.Prefixes = *w.Prefixes
	sum, marked := strings.CutPrefix(w.Hash, hashPrefix)
	raw, err := hex.DecodeString(sum)
	if !marked || err != nil || len(raw) != sha256.Size {
		return k, fmt.Errorf("hash: use %s and the 64 hexadecimal digits of the secret's SHA-256", hashPrefix)
	}
	k.Hash = [sha256.Size]byte(raw)
	return k, k.check()
}

// render returns the text of a file with these keys.
func render(keys []Key) ([]byte, error) {
	file := authFile{Keys: make([]authFileKey, 0, len(keys))}
	for _, k := range keys {
		prefixes := append([]string{}, k.Prefixes...)
		file.Keys = append(file.Keys, authFileKey{
			ID: k.ID, Name: k.Name, Role: k.Role.String(), Prefixes: &prefixes,
			CreatedAt: k.CreatedAt.UTC(), ExpiresAt: k.ExpiresAt.UTC(), Hash: hashPrefix + hex.EncodeToString(k.Hash[:]),
		})
	}
	content, err := json.Marshal(file, jsontext.WithIndent("  "), json.Deterministic(true))
	return append(content, '\n'), err
}

// ErrKeyNotFound means that the auth file has no key with this id.
var ErrKeyNotFound = errors.New("there is no such key")

// Add adds the key to the auth file. It creates a missing file with mode 0600. The change is atomic, and concurrent
// changes are not lost. An existing file keeps its owner, its group and the group's read permission. A malformed file
// is not changed.
func Add(path string, k Key) error {
	if err := k.check(); err != nil {
		return err
	}
	return updateFile(path, func(keys []Key, err error) ([]Key, error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if slices.ContainsFunc(keys, func(other Key) bool { return other.ID == k.ID }) {
			return nil, fmt.Errorf("%s already has a key with the id %s", path, k.ID)
		}
		return append(keys, k), nil
	})
}

// Revoke removes the key with this id from the auth file and returns it, or ErrKeyNotFound. It writes as Add does.
func Revoke(path, id string) (revoked Key, err error) {
	err = updateFile(path, func(keys []Key, err error) ([]Key, error) {
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == id })
		if i < 0 {
			return nil, ErrKeyNotFound
		}
		revoked = keys[i]
		return slices.Delete(keys, i, i+1), nil
	})
	return revoked, err
}

// updateFile calls edit with the results of ReadFile, and replaces the keys with its result. A lock on the
// file's folder serializes updates; it ends with the process.
func updateFile(path string, edit func([]Key, error) ([]Key, error)) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if err := lockExclusively(folder); err != nil {
		return fmt.Errorf("lock %s: %w", folder.Name(), err)
	}
	keys, err := edit(ReadFile(path))
	if err != nil {
		return err
	}
	content, err := render(keys)
	if err != nil {
		return err
	}
	if err := replaceFile(path, content); err != nil {
		return err
	}
	return syncFolder(folder)
}

// replaceFile creates or atomically replaces the file.
func replaceFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = copyOwnership(f, path)
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// copyOwnership gives f the owner, group and group read permission of the file at path, or mode 0600 if there is none.
func copyOwnership(f *os.File, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f.Chmod(0o600)
	}
	if err != nil {
		return err
	}
	if err := copyOwner(f, path, info); err != nil {
		return err
	}
	return f.Chmod(0o600 | info.Mode().Perm()&0o040)
}
