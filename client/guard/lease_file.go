package guard

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// A leaseFile keeps the lease_id of a lease where the next process finds it, see Options.LeaseIDFile. One process has it
// at a time. A nil leaseFile keeps nothing.
type leaseFile struct {
	path string
	kept keptLease

	mu   sync.Mutex
	lock *os.File // the file beside it, which is locked, since the file itself is replaced; nil once it is closed
}

// A keptLease is the content of the file, a JSON object. The same acquire has the same locks and the same holder.
type keptLease struct {
	Locks  []string  `json:"locks"` // the names, in order
	ID     uuid.UUID `json:"lease_id"`
	Holder string    `json:"holder"`
}

// openLeaseFile reads the file, if there is one, and keeps other processes out until it is closed. names are those of
// the locks to acquire, in order.
func openLeaseFile(path string, names []string) (*leaseFile, error) {
	if path == "" {
		return nil, nil
	}
	f := &leaseFile{path: path}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, f.invalid(errors.New("it is not a regular file"))
	}
	var err error
	if f.lock, err = os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, f.invalid(err)
	}
	switch alone, err := lockFile(f.lock); {
	case err != nil:
		return nil, errors.Join(f.invalid(err), f.lock.Close())
	case !alone:
		return nil, errors.Join(&lock.Error{Code: lock.ErrLeaseIDInUse, Detail: "Another process uses the lease_id file " + path +
			" now, so the same work is being done already. Give each work a file of its own."}, f.lock.Close())
	}
	if err := f.read(names); err != nil {
		return nil, errors.Join(err, f.lock.Close())
	}
	return f, nil
}

// read sets kept to the content of the file, which must be of a lease of these locks. It leaves kept zero if there is no
// file.
func (f *leaseFile) read(names []string) error {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f.kept)
	}
	switch {
	case err != nil:
		return f.invalid(err)
	case len(f.kept.Locks) == 0 || f.kept.ID == uuid.Nil || f.kept.Holder == "":
		return f.invalid(errors.New("it is not a JSON object with locks, lease_id and holder"))
	case !slices.Equal(f.kept.Locks, names):
		return lock.Invalid("LeaseIDFile", "%s keeps a lease of %s, not of %s; give each work a file of its own, or remove "+
			"the file: the lease in it then ends by itself", f.path, joined(f.kept.Locks), joined(names))
	}
	return nil
}

func (f *leaseFile) invalid(err error) error {
	return lock.Invalid("LeaseIDFile", "cannot be used: %v; give the name of a file that only this work uses and that this process can write", err)
}

// keep writes the lease_id, before it is sent.
func (f *leaseFile) keep(names []string, id lock.LeaseID, holder string) error {
	if f == nil {
		return nil
	}
	f.kept = keptLease{names, uuid.UUID(id), holder}
	text, err := json.Marshal(f.kept)
	if err == nil {
		err = os.WriteFile(f.path+".new", append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(f.path+".new", f.path)
	}
	if err != nil {
		return f.invalid(err)
	}
	return nil
}

// close lets the next process have the file. With ended set, that process gets a lease of its own; otherwise it goes on
// with this one, if it is still there. If the file cannot be removed, the next process finds out that the lease has ended.
func (f *leaseFile) close(ended bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil { // another process may have it by now
		return
	}
	if ended {
		_ = os.Remove(f.path)
	}
	_ = f.lock.Close()
	f.lock = nil
}
