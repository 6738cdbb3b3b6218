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
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"
)

// MaxFileSize is the greatest size of an auth file, in bytes: some ten thousand keys.
const MaxFileSize = 4 << 20

// hashPrefix says in the file what the hash is.
const hashPrefix = "sha256:"

// A authFile is the auth file as JSON has it.
type authFile struct {
	Keys []authFileKey `json:"keys"`
}

// A authFileKey is one key of it. Nil stands for what is not there.
type authFileKey struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Role      string    `json:"role"`
	Prefixes  *[]string `json:"prefixes"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Hash      string    `json:"hash"`
}

// ReadFile returns the keys in the auth file, in the order in which they stand there:
//
//	{"keys": [{
//	  "id": "k3f9a2xyqw", "name": "billing workers", "role": "lock", "prefixes": ["billing"],
//	  "created_at": "2026-01-02T03:04:05Z", "expires_at": "2027-01-02T03:04:05Z",
//	  "hash": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
//	}]}
//
// All members are needed but the instants; prefixes may be [], for all names. What is not so, an
// id that stands twice, and a file that others than its owner and group may write, is an error
// that names the place.
func ReadFile(path string) ([]Key, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	keys, err := parse(text.bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

// A fileContent is what a file held.
type fileContent struct {
	bytes []byte
	mode  fs.FileMode
}

func readText(path string) (_ fileContent, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe that nobody writes would be waited for
	if err != nil {
		return fileContent{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	about, err := f.Stat()
	if err != nil {
		return fileContent{}, err
	}
	if !about.Mode().IsRegular() {
		return fileContent{}, fmt.Errorf("%s is not a file that can be read again", path)
	}
	if about.Mode().Perm()&0o002 != 0 {
		return fileContent{}, fmt.Errorf("%s may be written by everybody on this machine, who could so make keys of their own: chmod o-w %s", path, path)
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxFileSize+1))
	if err == nil && len(content) > MaxFileSize {
		err = fmt.Errorf("%s has more than %d bytes", path, MaxFileSize)
	}
	return fileContent{content, about.Mode()}, err
}

// parse returns the keys that the file's text says there are.
func parse(content []byte) ([]Key, error) {
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, errors.New(`is empty; write {"keys": []} where there is to be no key`)
	}
	var w authFile
	if err := json.Unmarshal(content, &w, json.RejectUnknownMembers(true)); err != nil {
		return nil, withLineNumber(content, err)
	}
	keys, first := make([]Key, 0, len(w.Keys)), map[string]int{}
	for i, one := range w.Keys {
		k, err := one.key()
		if err != nil {
			return nil, fmt.Errorf("keys[%d] (%q): %w", i, one.Name, err)
		}
		if before, twice := first[k.ID]; twice {
			return nil, fmt.Errorf("keys[%d] (%q): id: %s is that of keys[%d], too", i, k.Name, k.ID, before)
		}
		first[k.ID], keys = i, append(keys, k)
	}
	return keys, nil
}

// withLineNumber returns err with the line at which the JSON is not what it is to be.
func withLineNumber(content []byte, err error) error {
	var offset int64
	if s := (*jsontext.SyntacticError)(nil); errors.As(err, &s) {
		offset = s.ByteOffset
	}
	if s := (*json.SemanticError)(nil); errors.As(err, &s) {
		offset = s.ByteOffset
	}
	line := 1 + bytes.Count(content[:min(max(offset, 0), int64(len(content)))], []byte("\n"))
	return fmt.Errorf("line %d: %w", line, err)
}

func (w authFileKey) key() (Key, error) {
	k := Key{ID: w.ID, Name: w.Name, Role: RoleOf(w.Role), CreatedAt: w.CreatedAt, ExpiresAt: w.ExpiresAt}
	if w.Prefixes == nil {
		return k, errors.New("prefixes: is missing; give [] for all names")
	}
	k.Prefixes = *w.Prefixes
	sum, marked := strings.CutPrefix(w.Hash, hashPrefix)
	raw, err := hex.DecodeString(sum)
	if !marked || err != nil || len(raw) != sha256.Size {
		return k, fmt.Errorf("hash: give %s and the 64 hexadecimal digits of the key's SHA-256", hashPrefix)
	}
	k.Hash = [sha256.Size]byte(raw)
	return k, k.check()
}

// render returns the file's text for the keys.
func render(keys []Key) ([]byte, error) {
	w := authFile{Keys: make([]authFileKey, 0, len(keys))}
	for _, k := range keys {
		prefixes := append([]string{}, k.Prefixes...)
		w.Keys = append(w.Keys, authFileKey{
			ID: k.ID, Name: k.Name, Role: k.Role.String(), Prefixes: &prefixes,
			CreatedAt: k.CreatedAt.UTC(), ExpiresAt: k.ExpiresAt.UTC(), Hash: hashPrefix + hex.EncodeToString(k.Hash[:]),
		})
	}
	content, err := json.Marshal(w, jsontext.WithIndent("  "), json.Deterministic(true))
	return append(content, '\n'), err
}
