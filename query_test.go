package paddock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func errOf[T any](_ T, err error) error { return err }

// A resolved is what came of a check: an error about the field, or none.
type resolved struct {
	err   error
	field string
}

func (r resolved) check(t *testing.T) {
	t.Helper()
	e := (*lock.Error)(nil)
	switch {
	case r.field == "" && r.err != nil:
		t.Errorf("err = %v, want none", r.err)
	case r.field != "" && (!errors.As(r.err, &e) || e.Code != lock.ErrInvalid || e.Field != r.field):
		t.Errorf("err = %v, want ErrInvalid about %s", r.err, r.field)
	}
}

func TestQueriesHaveBounds(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]resolved{
		"watching for the maximum wait":              {errOf(paddock.Watch{Name: "a", Seen: "1", Wait: lock.MaxWait}.Resolve()), ""},
		"watching for longer than the maximum":       {errOf(paddock.Watch{Name: "a", Wait: lock.MaxWait + 1}.Resolve()), "wait_ms"},
		"watching an invalid name":                   {errOf(paddock.Watch{Name: "/"}.Resolve()), "name"},
		"waiting the maximum for events":             {errOf(paddock.EventQuery{Wait: lock.MaxWait, Cursor: paddock.CursorNow}.Resolve()), ""},
		"waiting longer than the maximum for events": {errOf(paddock.EventQuery{Wait: lock.MaxWait + 1}.Resolve()), "wait_ms"},
		"a page of 1000":                             {errOf(paddock.LockQuery{Limit: 1000}.Resolve()), ""},
		"a page of 1001":                             {errOf(paddock.LockQuery{Limit: 1001}.Resolve()), "limit"},
		"a page of -1":                               {errOf(paddock.EventQuery{Limit: -1}.Resolve()), "limit"},
		"an invalid state":                           {errOf(paddock.LockQuery{State: "busy"}.Resolve()), "state"},
		"an invalid prefix":                          {errOf(paddock.LockQuery{Prefix: "%"}.Resolve()), "prefix"},
		"events of a lock and a prefix":              {errOf(paddock.EventQuery{Names: []string{"a"}, Prefix: "b"}.Resolve()), "prefix"},
	} {
		t.Run(name, r.check)
	}
}

// TestSearchAllowsOlderHolders: a holder that is refused today may still have a lease.
func TestSearchAllowsOlderHolders(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]resolved{
		"any holder":              {errOf(paddock.LockQuery{}.Resolve()), ""},
		"a bidirectional control": {errOf(paddock.LockQuery{Holder: "\u202eroot"}.Resolve()), ""},
		"a space":                 {errOf(paddock.LockQuery{Holder: " "}.Resolve()), ""},
		"a control character":     {errOf(paddock.LockQuery{Holder: "a\n"}.Resolve()), "holder"},
		"201 characters":          {errOf(paddock.LockQuery{Holder: strings.Repeat("é", 201)}.Resolve()), "holder"},
	} {
		t.Run(name, r.check)
	}
}
