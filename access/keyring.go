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
)

// reloadInterval is the time between two reads of the auth file.
const reloadInterval = time.Second

// A Keyring finds the keys of an auth file by their secrets. It is safe for concurrent use.
type Keyring struct {
	path string
	log  *slog.Logger

	mu   sync.RWMutex
	keys map[string]loadedKey // by id

	content   []byte // of the file when last read, valid or not
	lastError string // of that read; empty: none
	close     context.CancelFunc
	done      chan struct{} // closed when polling has stopped
}

// A loadedKey is a key, and the function that ends its revocation context.
type loadedKey struct {
	key    Key
	revoke context.CancelFunc
}

// Open returns a Keyring of the keys in the auth file, or the error of [ReadFile]. The Keyring reloads the
// file when it changes, until Close. It logs changes and errors, and warns if every user of the machine may read the
// file. The log may be nil.
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

// Close stops reloading. The Keyring keeps its keys.
func (r *Keyring) Close() {
	r.close()
	<-r.done
}

// Find returns the key with this secret. It returns ErrKeyInvalid for every unknown secret, with the same text and in
// the same time, and ErrKeyExpired for the secret of an expired key.
func (r *Keyring) Find(secret string) (Key, error) {
	sum := sha256.Sum256([]byte(secret))
	id, _ := KeyID(secret)
	r.mu.RLock()
	found, known := r.keys[id] // for an unknown id, the zero Hash is compared
	r.mu.RUnlock()
	same := subtle.ConstantTimeCompare(sum[:], found.key.Hash[:]) == 1
	if !known || !same {
		return Key{}, errInvalid()
	}
	if found.key.Expired(time.Now()) {
		return Key{}, found.key.errExpired()
	}
	return found.key, nil
}

// pollFile reloads the file periodically until ctx ends.
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

// reload loads the file and logs each error once.
func (r *Keyring) reload() {
	failure := ""
	if err := r.load(); err != nil {
		failure = err.Error()
	}
	if failure != "" && failure != r.lastError {
		r.log.Error("cannot load the auth file; keeping the previous keys", "error", failure)
	}
	if failure == "" && r.lastError != "" {
		r.log.Info("the auth file is valid again", "path", r.path)
	}
	r.lastError = failure
}

// load replaces the keys by those in the file, if it has changed. On an error it changes nothing.
func (r *Keyring) load() error {
	file, err := readContent(r.path)
	if err != nil {
		return err
	}
	if r.content != nil && r.lastError == "" && bytes.Equal(file.bytes, r.content) {
		return nil
	}
	keys, err := parse(file.bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	r.content = file.bytes
	if file.mode.Perm()&0o004 != 0 {
		r.log.Warn("the auth file is readable by every user of this machine; run chmod o-r", "path", r.path)
	}
	r.replaceKeys(keys)
	return nil
}

// replaceKeys replaces the keys, and revokes removed and changed keys.
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
		ctx, revoke := context.WithCancel(context.Background())
		k.revocation = ctx
		next[k.ID], added = loadedKey{k, revoke}, append(added, k.ID)
	}
	dropped := slices.Sorted(maps.Keys(r.keys))
	for _, before := range r.keys {
		before.revoke()
	}
	r.keys = next
	if len(next) == 0 {
		r.log.Warn("the auth file has no keys, so all callers are refused; add one with paddock key new", "path", r.path)
	}
	r.log.Info("loaded the auth file", "path", r.path, "keys", len(next), "added", added, "dropped", dropped)
}
