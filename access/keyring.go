package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// reloadInterval is how often the auth file is looked at.
const reloadInterval = time.Second

// A Keyring finds keys by their secrets, among those in an auth file. It is safe for
// concurrent use.
type Keyring struct {
	path string
	log  *slog.Logger

	mu   sync.RWMutex
	keys map[string]loadedKey // by id

	content  []byte // of the file when it was read last, also if there was a mistake in it
	lastError string // what was wrong with it then; empty: nothing
	close context.CancelFunc
	done  chan struct{} // closed when the file is not read any more
}

// A loadedKey is a key, and what ends its context.
type loadedKey struct {
	key  Key
	revoke context.CancelFunc
}

// Open returns a Keyring of the keys in the auth file, or the error of [ReadFile]. It reads the
// file again when it changes, until Close. The log, which may be nil, is told of changes and
// of mistakes, and by a warning that everybody on the machine may read the file: there
// are only hashes in it, yet nobody else needs them.
func Open(path string, log *slog.Logger) (*Keyring, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Keyring{path: path, log: log, keys: map[string]loadedKey{}, done: make(chan struct{})}
	if err := r.load(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.close = cancel
	go r.pollFile(ctx)
	return r, nil
}

// Close has the Keyring read the file no more. What it knows it goes on knowing.
func (r *Keyring) Close() {
	r.close()
	<-r.done
}

// Find returns the key that the secret is of. It refuses with ErrKeyInvalid what is none,
// in the same words and the same time whatever is wrong with it, and with ErrKeyExpired
// whoever shows the right secret of a key that is over.
func (r *Keyring) Find(secret string) (Key, error) {
	sum := sha256.Sum256([]byte(secret))
	id, _ := KeyID(secret)
	r.mu.RLock()
	h, known := r.keys[id] // of an unknown id the zero Hash is compared
	r.mu.RUnlock()
	same := subtle.ConstantTimeCompare(sum[:], h.key.Hash[:]) == 1
	if !known || !same {
		return Key{}, errInvalid()
	}
	return h.unexpired()
}

func errInvalid() error {
	return &lock.Error{Code: lock.ErrKeyInvalid,
		Detail: "The API key is none that this service knows: it was mistyped, or revoked. Ask whoever runs the service for another."}
}

// unexpired returns the key, or ErrKeyExpired if it is over.
func (h loadedKey) unexpired() (Key, error) {
	if h.key.Expired(time.Now()) {
		return Key{}, h.key.errExpired()
	}
	return h.key, nil
}

func (k Key) errExpired() error {
	return &lock.Error{Code: lock.ErrKeyExpired, Detail: fmt.Sprintf(
		"The API key %s has expired at %s. Ask whoever runs the service for another.", k, k.ExpiresAt.UTC().Format(time.RFC3339))}
}

// pollFile reads the file again and again until ctx ends.
func (r *Keyring) pollFile(ctx context.Context) {
	defer close(r.done)
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.reload()
		case <-ctx.Done():
			return
		}
	}
}

// reload reads the file and tells once of each mistake.
func (r *Keyring) reload() {
	wrong := ""
	if err := r.load(); err != nil {
		wrong = err.Error()
	}
	if wrong != "" && wrong != r.lastError {
		r.log.Error("the auth file cannot be used: the keys stay as they were", "error", wrong)
	}
	if wrong == "" && r.lastError != "" {
		r.log.Info("the auth file can be used again", "path", r.path)
	}
	r.lastError = wrong
}

// load takes over what is in the file. On an error all stays as it was.
func (r *Keyring) load() error {
	text, err := readText(r.path)
	if err != nil {
		return err
	}
	if r.content != nil && r.lastError == "" && bytes.Equal(text.bytes, r.content) {
		return nil
	}
	keys, err := parse(text.bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	r.content = text.bytes
	if text.mode.Perm()&0o004 != 0 {
		r.log.Warn("the auth file may be read by everybody on this machine: chmod o-r it, unless the folder keeps them out", "path", r.path)
	}
	r.replaceKeys(keys)
	return nil
}

// replaceKeys has the keys be those that there are. The contexts of others end.
func (r *Keyring) replaceKeys(keys []Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := make(map[string]loadedKey, len(keys))
	var added []string
	for _, k := range keys {
		before, known := r.keys[k.ID]
		if known && before.key.sameAs(k) {
			next[k.ID] = before
			delete(r.keys, k.ID)
			continue
		}
		ctx, drop := context.WithCancel(context.Background())
		k.revoked = ctx
		next[k.ID], added = loadedKey{k, drop}, append(added, k.ID)
	}
	dropped := slices.Sorted(maps.Keys(r.keys))
	for _, h := range r.keys {
		h.revoke()
	}
	r.keys = next
	if len(next) == 0 {
		r.log.Warn("the auth file has no key: nobody gets in. paddock key new makes one", "path", r.path)
	}
	r.log.Info("read the auth file", "path", r.path, "keys", len(next), "added", added, "dropped", dropped)
}

// sameAs is whether two keys of one id are the same in all that counts.
func (k Key) sameAs(other Key) bool {
	return k.Hash == other.Hash && k.Role == other.Role && k.Name == other.Name && slices.Equal(k.Prefixes, other.Prefixes) &&
		k.ExpiresAt.Equal(other.ExpiresAt)
}
