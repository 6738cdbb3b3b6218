package web

import (
	"net/url"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// root is where the locks are listed.
const root = "/ui/"

// A filter says which locks to list, as the address of the list does.
type filter struct {
	Prefix  string
	State   string
	Holder  string
	Cursor  string
	Refresh bool // fetch the page anew every five seconds where no script runs
}

func filterFrom(v url.Values) filter {
	return filter{
		Prefix:  strings.TrimSpace(v.Get("prefix")),
		State:   v.Get("state"),
		Holder:  v.Get("holder"),
		Cursor:  v.Get("cursor"),
		Refresh: v.Get("refresh") == "5",
	}
}

func (f filter) query() lock.LockQuery {
	return lock.LockQuery{Prefix: f.Prefix, State: lock.State(f.State), Holder: f.Holder, Cursor: f.Cursor}
}

// Narrow is whether the filter leaves out some locks.
func (f filter) Narrow() bool { return f.Prefix != "" || f.State != "" || f.Holder != "" }

// States are the choices of the state's field.
func (filter) States() []lock.State { return []lock.State{lock.Free, lock.Held, lock.InGrace} }

func (f filter) values() url.Values {
	v := url.Values{}
	for key, value := range map[string]string{"prefix": f.Prefix, "state": f.State, "holder": f.Holder, "cursor": f.Cursor} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if f.Refresh {
		v.Set("refresh", "5")
	}
	return v
}

// URL returns the address of the list.
func (f filter) URL() string { return address(root, f.values()) }

// At returns the filter with its page beginning at the cursor.
func (f filter) At(cursor string) filter {
	f.Cursor = cursor
	return f
}

// Wide returns the filter with nothing left out, on its first page.
func (f filter) Wide() filter { return filter{Refresh: f.Refresh} }

func address(path string, v url.Values) string {
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}
