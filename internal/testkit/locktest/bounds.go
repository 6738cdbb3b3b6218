package locktest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func boundsCases() cases {
	return cases{
		"an invalid acquire is refused":      boundAcquire,
		"an invalid set is refused":          boundSet,
		"an invalid session is refused":      boundSession,
		"an invalid name is refused":         boundName,
		"other invalid changes are refused":  boundChanges,
		"an invalid fenced write is refused": boundWrite,
		"an invalid query is refused":        boundQueries,
	}
}

// badNames returns invalid names. Some of them mean something in a path.
func badNames() []string {
	return []string{
		"", "-a", ".", "..", ":a", "a/b", "a b", "a%2Fb", "é", "a\x00b", "a\n", "a?b", "a#b", "a\xff", strings.Repeat("x", lock.MaxNameLength+1),
	}
}

// expectInvalid ends the test unless err is ErrInvalid for the field.
func (s *fixture) expectInvalid(what any, err error, field string) {
	s.Helper()
	e := s.expectError(err, lock.ErrInvalid)
	if e.Field != field {
		s.Errorf("%+v: the invalid field is %q, want %q (%v)", what, e.Field, field, err)
	}
}

// expectAllInvalid ends the test unless each call is refused because of the field.
func expectAllInvalid[Q any](s *fixture, call func(Q) error, wrong map[string][]Q) {
	s.Helper()
	for field, all := range wrong {
		for _, q := range all {
			s.expectInvalid(q, call(q), field)
		}
	}
}

func boundAcquire(s *fixture) {
	expectAllInvalid(s, func(a lock.Acquire) error { return errOf(s.acquire(a)) }, map[string][]lock.Acquire{
		"holder":      {{Holder: strings.Repeat("h", lock.MaxHolderLength+1)}, {Holder: "a\xff"}},
		"mode":        {{Locks: s.as(7)}},
		"capacity":    {{Locks: []lock.Member{{Name: s.name, Capacity: 1}}}, {Locks: s.as(lock.Permit)}},
		"permits":     {{Locks: s.permits(threePermits + 1)}, {Locks: s.permits(-1)}, {Locks: []lock.Member{{Name: s.name, Permits: 1}}}},
		"wait_ms":     {{Wait: -1}, {Wait: lock.MaxWait + time.Millisecond}},
		"ttl_ms":      {{TTL: 1}, {TTL: -longTTL}},
		"grace_ms":    {{Grace: -time.Millisecond}},
		"max_hold_ms": {{MaxHold: -1}},
		"task_id":     {{Task: "a..b"}},
		"metadata": {
			{Metadata: json.RawMessage(`null`)}, {Metadata: json.RawMessage(`{`)}, {Metadata: json.RawMessage{}},
			{Metadata: json.RawMessage("{\"a\":\"\xff\"}")}, {Metadata: json.RawMessage(`{"a":1e99999}`)},
		},
	})
	s.expectInvalid("no holder", errOf(s.locks().Acquire(s.ctx, lock.Acquire{Locks: lock.One(s.name), TTL: longTTL})), "holder")
	if l := s.get(s.name); l.Revision != 0 {
		s.Errorf("a refused acquire changed the lock: %+v", l)
	}
}

func boundSet(s *fixture) {
	var tooMany []int
	for n := range lock.MaxSetSize + 1 {
		tooMany = append(tooMany, n)
	}
	with := func(m lock.Member) []lock.Member { return append(s.set(1, 2), m) }
	acquire := func(set []lock.Member) error { return errOf(s.acquire(lock.Acquire{Locks: set})) }
	expectAllInvalid(s, acquire, map[string][][]lock.Member{
		"locks":            {s.set(tooMany...), {}},
		"locks/2/name":     {s.set(1, 2, 1), with(lock.Member{}), with(lock.Member{Name: "a/b"})},
		"locks/1/name":     {s.set(3, 3, 1)},
		"locks/2/mode":     {with(lock.Member{Name: s.other(3), Mode: 7})},
		"locks/2/capacity": {with(lock.Member{Name: s.other(3), Mode: lock.Permit})},
		"locks/2/permits":  {with(lock.Member{Name: s.other(3), Mode: lock.Permit, Capacity: 1, Permits: 2})},
		"name":             {{{}}},
	})
	names := map[string][][]string{"names": {s.others(tooMany...), nil}, "name": {{""}}, "names/2": {s.others(1, 2, 1)}, "names/1": {{s.other(1), ""}}}
	expectAllInvalid(s, func(n []string) error {
		return errOf(s.locks().Renew(s.ctx, lock.Renew{Locks: n, LeaseID: newID()}))
	}, names)
	expectAllInvalid(s, func(n []string) error { return s.locks().Release(s.ctx, lock.Release{Locks: n, LeaseID: newID()}) }, names)
	s.expectInvalid("no lease_id", errOf(s.locks().Renew(s.ctx, lock.Renew{Locks: s.others(1, 2)})), "lease_id")
	if used := s.names(paddock.LockQuery{Prefix: s.name}); len(used) != 0 {
		s.Errorf("refused calls used the locks %v", used)
	}
}

func boundSession(s *fixture) {
	id := s.openSession(lock.OpenSession{}).ID
	expectAllInvalid(s, func(a lock.Acquire) error {
		a.Locks, a.Holder, a.SessionID = lock.One(s.name), "first", id
		return errOf(s.locks().Acquire(s.ctx, a))
	}, map[string][]lock.Acquire{"ttl_ms": {{TTL: longTTL}}, "grace_ms": {{Grace: time.Second}}})
	expectAllInvalid(s, func(o lock.OpenSession) error { return errOf(s.locks().OpenSession(s.ctx, o)) }, map[string][]lock.OpenSession{
		"holder": {{}, {Holder: "a\nb"}}, "ttl_ms": {{Holder: "h", TTL: 1}}, "grace_ms": {{Holder: "h", Grace: -1}}, "metadata": {{Holder: "h", Metadata: []byte(`[]`)}},
	})
	s.expectInvalid("no session", errOf(s.locks().RenewSession(s.ctx, lock.RenewSession{})), "session_id")
	s.expectInvalid("a TTL", errOf(s.locks().RenewSession(s.ctx, lock.RenewSession{ID: id, TTL: 1})), "ttl_ms")
	s.expectInvalid("no reason", errOf(s.locks().RevokeSession(s.ctx, lock.RevokeSession{Ref: id.Ref()})), "reason")
	s.expectInvalid("a cursor", errOf(s.locks().Sessions(s.ctx, paddock.SessionQuery{Cursor: "x"})), "cursor")
}

func boundName(s *fixture) {
	for _, name := range badNames() {
		for call, err := range map[string]error{
			"acquire": errOf(s.locks().Acquire(s.ctx, lock.Acquire{Locks: lock.One(name), Holder: "h", TTL: longTTL})),
			"renew":   errOf(s.locks().Renew(s.ctx, lock.Renew{Locks: []string{name}, LeaseID: newID()})),
			"release": s.locks().Release(s.ctx, lock.Release{Locks: []string{name}, LeaseID: newID()}),
			"revoke":  errOf(s.locks().Revoke(s.ctx, lock.Revoke{Name: name, Token: 1, Reason: "r"})),
			"get":     errOf(s.locks().Lock(s.ctx, name)),
			"watch":   errOf(s.locks().Watch(s.ctx, paddock.Watch{Name: name, Seen: "1.1.held"})),
			"queue":   errOf(s.locks().Queue(s.ctx, name)),
			"verify":  errOf(s.locks().VerifyToken(s.ctx, lock.Verify{Name: name, Token: 1})),
		} {
			s.expectInvalid(fmt.Sprintf("%s %q", call, name), err, "name")
		}
		s.expectInvalid(name, errOf(s.locks().ReadFenced(s.ctx, name)), "key")
	}
	for _, root := range []string{"", s.name + ":", "a b", ":a"} {
		s.expectInvalid(root, errOf(s.locks().DeclareTree(s.ctx, root)), "root")
	}
}

func badTokens() []lock.Token { return []lock.Token{0, -1, lock.MaxToken + 1} }

func boundChanges(s *fixture) {
	for what, c := range map[string]struct {
		err   error
		field string
	}{
		"a renewal without lease_id":   {errOf(s.locks().Renew(s.ctx, lock.Renew{Locks: []string{s.name}})), "lease_id"},
		"a long renewal":               {errOf(s.locks().Renew(s.ctx, lock.Renew{Locks: []string{s.name}, LeaseID: newID(), TTL: lock.MaxTTL + time.Millisecond})), "ttl_ms"},
		"a number beyond a float64":    {errOf(s.locks().Renew(s.ctx, lock.Renew{Locks: []string{s.name}, LeaseID: newID(), Metadata: json.RawMessage(`{"a":1e99999}`)})), "metadata"},
		"a release without lease_id":   {s.locks().Release(s.ctx, lock.Release{Locks: []string{s.name}}), "lease_id"},
		"a revocation of slot -1":      {errOf(s.locks().Revoke(s.ctx, lock.Revoke{Name: s.name, Token: 1, Slot: new(-1), Reason: "r"})), "slot"},
		"a revocation without reason":  {errOf(s.locks().Revoke(s.ctx, lock.Revoke{Name: s.name, Token: 1})), "reason"},
		"a verification of slot -1":    {errOf(s.locks().VerifyToken(s.ctx, lock.Verify{Name: s.name, Token: 1, Slot: new(-1)})), "slot"},
		"a report of slot -1":          {errOf(s.locks().ReportStale(s.ctx, lock.ReportStale{Name: s.name, Token: 1, Slot: new(-1)})), "slot"},
		"a report from a bad resource": {errOf(s.locks().ReportStale(s.ctx, lock.ReportStale{Name: s.name, Token: 1, Where: "a\nb"})), "where"},
	} {
		s.expectInvalid(what, c.err, c.field)
	}
	for _, token := range badTokens() {
		s.expectInvalid(token, errOf(s.revoke(token)), "fencing_token")
		s.expectInvalid(token, errOf(s.locks().VerifyToken(s.ctx, lock.Verify{Name: s.name, Token: token})), "fencing_token")
	}
}

func boundWrite(s *fixture) {
	refused := func(field string, change func(*lock.FencedWrite)) {
		s.Helper()
		w := lock.FencedWrite{Key: s.name, Lock: s.name, Token: 1, Value: json.RawMessage(`1`)}
		change(&w)
		s.expectInvalid(w, errOf(s.locks().WriteFenced(s.ctx, w)), field)
	}
	for _, name := range badNames() {
		refused("key", func(w *lock.FencedWrite) { w.Key = name })
		refused("lock", func(w *lock.FencedWrite) { w.Lock = name })
	}
	for _, token := range badTokens() {
		refused("fencing_token", func(w *lock.FencedWrite) { w.Token = token })
	}
	for _, value := range []json.RawMessage{nil, json.RawMessage(``), json.RawMessage(`1 2`), json.RawMessage("\"\xff\""), json.RawMessage(`1e99999`)} {
		refused("value", func(w *lock.FencedWrite) { w.Value = value })
	}
	refused("slot", func(w *lock.FencedWrite) { w.Slot = lock.MaxHolders + 1 })
	for _, id := range []string{strings.Repeat("ä", lock.MaxOperationIDLength+1), " ", "a\nb", "\xff", "a\x00"} {
		refused("operation_id", func(w *lock.FencedWrite) { w.OperationID = id })
	}
	refused("if_version", func(w *lock.FencedWrite) { w.IfVersion = new(int64(-1)) })
}

// badCursors returns texts that are no cursors.
func badCursors() []string {
	return []string{"x", "not a cursor", "%00", "1 or 1=1", strings.Repeat("c", 1000)}
}

func boundQueries(s *fixture) {
	now := time.Now()
	locks := map[string][]paddock.LockQuery{
		"prefix":   {{Prefix: "a/b"}, {Prefix: "a\xff"}},
		"state":    {{State: "gone"}},
		"holder":   {{Holder: "a\x00"}},
		"contains": {{Contains: "a\nb"}},
		"sort":     {{Sort: "name"}},
		"limit":    {{Limit: -1}, {Limit: paddock.MaxLimit + 1}},
	}
	events := map[string][]paddock.EventQuery{
		"lock":    {{Names: []string{"a/b"}}, {Names: []string{"a\xff"}}},
		"prefix":  {{Prefix: "a/b"}, {Names: []string{s.name}, Prefix: s.name}},
		"limit":   {{Limit: -1}, {Limit: paddock.MaxLimit + 1}},
		"until":   {{Since: now, Until: now}, {Since: now, Until: now.Add(-time.Second)}},
		"wait_ms": {{Wait: -1}, {Wait: lock.MaxWait + time.Millisecond}, {Until: now, Wait: time.Second}, {Descending: true, Wait: time.Second}},
		"kind":    {{Kinds: []lock.Kind{lock.Granted, 99}}},
		"holder":  {{Holder: strings.Repeat("h", lock.MaxHolderLength+1)}},
		"cursor":  {{Descending: true, Cursor: "x"}, {Descending: true, Cursor: paddock.CursorNow}},
	}
	for _, cursor := range badCursors() {
		locks["cursor"] = append(locks["cursor"], paddock.LockQuery{Prefix: s.name, Cursor: cursor})
		events["cursor"] = append(events["cursor"], paddock.EventQuery{Names: []string{s.name}, Cursor: cursor})
	}
	expectAllInvalid(s, func(q paddock.LockQuery) error { return errOf(s.locks().Locks(s.ctx, q)) }, locks)
	expectAllInvalid(s, func(q paddock.EventQuery) error { return errOf(s.locks().Events(s.ctx, q)) }, events)
	expectAllInvalid(s, func(q paddock.HoldQuery) error { return errOf(paddock.ReadHolds(s.ctx, s.locks(), q)) }, map[string][]paddock.HoldQuery{
		"name": {{Name: "a b"}}, "until": {{Name: s.name, At: now, Until: now}}, "limit": {{Name: s.name, Limit: paddock.MaxLimit + 1}},
	})
	for _, wait := range []time.Duration{-1, lock.MaxWait + time.Millisecond} {
		s.expectInvalid(wait, errOf(s.locks().Watch(s.ctx, paddock.Watch{Name: s.name, Seen: "1.1.held", Wait: wait})), "wait_ms")
	}
}
