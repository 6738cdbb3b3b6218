package access_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// TestEveryChangeIsThatOfTheKey, in the trace that the server has found, whatever caller was said before.
func TestEveryChangeIsThatOfTheKey(t *testing.T) {
	t.Parallel()
	for name, m := range methods {
		if m.role == access.Read {
			continue
		}
		s := newSpy()
		ctx := lock.WithCaller(withKey(t, access.Admin), lock.Caller{Name: "somebody", KeyID: "else", Trace: "0af7"})
		if err := m.call(ctx, access.Guard(s, access.Limits{}), "billing:"); err != nil {
			m.call(ctx, access.Guard(s, access.Limits{}), "billing:a") //nolint:errcheck // it is checked by what the spy saw
		}
		if by := s.caller.Load(); by == nil || *by != (lock.Caller{Name: "ci", KeyID: "a1", Trace: "0af7"}) {
			t.Errorf("%s is a call of %+v", name, by)
		}
	}
}

// A toldEvents is a paddock.Service with these events.
type toldEvents struct {
	paddock.Service
	events []lock.Event
}

func (s toldEvents) Events(context.Context, paddock.EventQuery) (paddock.Page[lock.Event], error) {
	return paddock.Page[lock.Event]{Items: s.events}, nil
}

// TestKeysWithPrefixesSeeNoNamesOfOtherKeys, but their ids, and the names of operators; nor the names of locks of a set
// that they do not cover.
func TestKeysWithPrefixesSeeNoNamesOfOtherKeys(t *testing.T) {
	t.Parallel()
	told := toldEvents{events: []lock.Event{
		{Name: "billing:a", Kind: lock.Granted, Caller: lock.Caller{Name: "biller", KeyID: "b1"}, Set: []string{"billing:a", "repo"}},
		{Name: "billing:a", Kind: lock.Released, Caller: lock.Caller{Name: "ci", KeyID: "a1"}},
		{Name: "billing:a", Kind: lock.Revoked, Caller: lock.Caller{Name: "anna", KeyID: "o1", Trace: "0af7"}},
		{Name: "billing:a", Kind: lock.Expired},
	}}
	all, covered := []string{"billing:a", "repo"}, []string{"billing:a", "(not covered)"}
	for what, c := range map[string]struct {
		ctx   context.Context
		names []string
		set   []string
	}{
		"a key for all names":     {withKey(t, access.Read), []string{"biller", "ci", "anna", ""}, all},
		"an operator of a prefix": {withKey(t, access.Admin, "billing"), []string{"biller", "ci", "anna", ""}, covered},
		"a reader of a prefix":    {withKey(t, access.Read, "billing"), []string{"b1", "ci", "anna", ""}, covered},
		"a client below a prefix": {withKey(t, access.Lock, "billing"), []string{"b1", "ci", "anna", ""}, covered},
	} {
		page, err := access.Guard(told, access.Limits{}).Events(c.ctx, paddock.EventQuery{Prefix: "billing:"})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range page.Items {
			names = append(names, e.Caller.Name)
		}
		if diff := cmp.Diff(c.names, names); diff != "" || !slices.Equal(page.Items[0].Set, c.set) || page.Items[2].Caller.Trace != "0af7" {
			t.Errorf("%s sees %+v (-want +got):\n%s", what, page.Items, diff)
		}
	}
	if told.events[0].Caller.Name != "biller" || !slices.Equal(told.events[0].Set, all) {
		t.Error("the events of others are changed")
	}
}
