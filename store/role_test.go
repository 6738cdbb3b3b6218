package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/store"
)

// An account is a role with the grants of docs/operations.md on a database of the test.
type account struct {
	*testing.T
	owner *pgx.Conn
	name  string
	url   *url.URL // with a password that the server may not ask for
}

func newAccount(t *testing.T) *account {
	t.Helper()
	text := pgtest.URL(t)
	parsed, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	a := &account{T: t, owner: connect(t, text), url: parsed}
	database := a.owner.Config().Database
	a.name = "app" + database[len(database)-13:]
	a.url.User = url.UserPassword(a.name, "secret")
	exec(t, a.owner, "create role "+a.name+" login password 'secret'")
	t.Cleanup(func() {
		if _, err := a.owner.Exec(context.Background(), "drop owned by "+a.name+"; drop role "+a.name); err != nil {
			t.Error(err)
		}
	})
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, grants, _ := strings.Cut(string(page), "\ngrant usage on schema paddock to paddock_app;\n")
	grants, _, _ = strings.Cut(grants, "```")
	a.exec("grant usage on schema paddock to paddock_app; " + grants)
	return a
}

// exec runs statements of the owner, in which paddock_app stands for the role.
func (a *account) exec(sql string) {
	a.Helper()
	exec(a.T, a.owner, strings.ReplaceAll(sql, "paddock_app", a.name))
}

// TestAMissingRightIsNamed revokes each right that the service needs, at a start and while it runs.
func TestAMissingRightIsNamed(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := open(t, a.url.String())
	for _, c := range []struct {
		on      string // schema, table, sequence or function
		right   string
		answers bool // calls go on without it
	}{
		{on: "schema paddock", right: "usage"},
		{on: "paddock.records", right: "select"},
		{on: "paddock.records", right: "insert", answers: true},
		{on: "paddock.records", right: "update"},
		{on: "paddock.records", right: "delete", answers: true},
		{on: "paddock.event_batches", right: "insert"},
		{on: "paddock.horizon", right: "update", answers: true},
		{on: "paddock.schema_migrations", right: "select", answers: true},
		{on: "sequence paddock.event_batch_ids", right: "usage, update"},
	} {
		grant := "grant " + c.right + " on " + c.on + " to " + a.name + ";"
		a.exec("revoke " + c.right + " on " + c.on + " from paddock_app")
		var missing *store.RightsError
		if err := s.Ready(t.Context()); !errors.As(err, &missing) || !strings.Contains(err.Error(), grant) {
			t.Errorf("ready: %v; want %q", err, grant)
		}
		if started, err := store.Open(t.Context(), a.url.String(), store.Options{}); err == nil {
			started.Close()
			t.Errorf("a store opened without %s", grant)
		} else if !errors.As(err, &missing) || !strings.Contains(err.Error(), grant) {
			t.Errorf("open: %v; want %q", err, grant)
		}
		if _, err := s.Acquire(t.Context(), acquire("l"+uuid.NewString())); err != nil && !errors.Is(err, lock.ErrUnavailable) || err == nil && !c.answers {
			t.Errorf("acquire without %q: %v", grant, err)
		}
		a.exec(grant)
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("ready after %q: %v", grant, err)
		}
		mustAcquire(t, s, acquire("l"+uuid.NewString()))
	}
}

// TestEachRightIsNamed revokes each right that the grants of docs/operations.md give, in turn, from a running service.
// Its readiness says how to grant it, and no call fails as if the service were broken.
func TestEachRightIsNamed(t *testing.T) {
	t.Parallel()
	const parts = 4
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			namesEachRight(t, part, parts)
		})
	}
}

// namesEachRight revokes of the rights every one whose number, modulo parts, is part.
func namesEachRight(t *testing.T, part, parts int) {
	a := newAccount(t)
	s := open(t, a.url.String())
	a.exec("set search_path = pg_catalog") // so that functions are shown with their schema
	rows, _ := a.owner.Query(t.Context(), `
		select format('%s on %spaddock.%I', need, case relkind when 'S' then 'sequence ' else '' end, relname)
		from pg_class, unnest(case when relkind = 'S' then array['usage', 'select', 'update']
			when relname = 'schema_migrations' then array['select'] else array['select', 'insert', 'update', 'delete'] end) as need
		where relnamespace = 'paddock'::regnamespace and relkind in ('r', 'p', 'S')
		union all select format('execute on function %s', oid::regprocedure) from pg_proc where pronamespace = 'paddock'::regnamespace
		union all select 'usage on schema paddock' order by 1`)
	rights, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(rights) < 60 {
		t.Fatalf("%q, %v", rights, err)
	}
	for i, right := range rights {
		if i%parts != part {
			continue
		}
		from := "paddock_app"
		if strings.HasPrefix(right, "execute") {
			from = "public"
		}
		a.exec("revoke " + right + " from " + from)
		grant := "grant " + right + " to " + a.name + ";"
		refusal := new(lock.Error)
		if err := s.Ready(t.Context()); !errors.As(err, &refusal) || refusal.Code != lock.ErrUnavailable || !strings.Contains(refusal.Detail, grant) {
			t.Errorf("ready: %v; want %q", err, grant)
		}
		if err := store.Check(t.Context(), a.url.String(), store.Options{}); err == nil || !strings.Contains(err.Error(), grant) {
			t.Errorf("check: %v; want %q", err, grant)
		}
		name := "l" + uuid.NewString()
		_, acquired := s.Acquire(t.Context(), acquire(name))
		_, opened := s.OpenSession(t.Context(), lock.OpenSession{Holder: "me", TTL: time.Minute})
		_, declared := s.DeclareTree(t.Context(), "t"+name)
		_, set := s.SetRule(t.Context(), lock.Rule{Scope: lock.Scope(name), MaxTTL: time.Minute})
		_, frozen := s.Freeze(t.Context(), lock.FreezeRequest{Scope: lock.Scope(name), Reason: "x", For: time.Minute})
		_, one := s.Lock(t.Context(), name)
		_, events := s.Events(t.Context(), paddock.EventQuery{})
		_, locks := s.Locks(t.Context(), paddock.LockQuery{})
		_, sessions := s.Sessions(t.Context(), paddock.SessionQuery{})
		_, trees := s.Trees(t.Context())
		_, rules := s.Rules(t.Context())
		_, freezes := s.Freezes(t.Context())
		_, fenced := s.ReadFenced(t.Context(), name)
		for call, err := range map[string]error{
			"acquire": acquired, "open session": opened, "declare tree": declared, "set rule": set, "freeze": frozen, "lock": one,
			"events": events, "locks": locks, "sessions": sessions, "trees": trees, "rules": rules, "freezes": freezes, "fenced": fenced,
		} {
			if refused := new(lock.Error); err != nil && (!errors.As(err, &refused) || refused.Code == lock.ErrInternal) {
				t.Errorf("%s without %q: %v", call, right, err)
			}
			missing := new(store.RightsError)
			if denied := new(pgconn.PgError); errors.As(err, &denied) && (!errors.As(err, &missing) || !strings.Contains(missing.Error(), grant)) {
				t.Errorf("%s without %q: %v does not say how to grant it", call, right, denied)
			}
		}
		a.exec("grant " + right + " to " + from)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRightsOfBuiltinFunctionsAreChecked: a hardened server may have revoked them. Nothing rests on package status.
func TestRightsOfBuiltinFunctionsAreChecked(t *testing.T) {
	t.Parallel()
	rights, err := os.ReadFile("internal/database/sql/rights.sql")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, pattern := range []string{"sql/*.sql", "internal/*/sql/*.sql"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.Contains(filepath.ToSlash(file), "/status/") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range builtin.FindAllStringSubmatch(string(text), -1) {
				found++
				if !strings.Contains(string(rights), "'"+call[1]+"'") {
					t.Errorf("%s calls %s, which rights.sql does not check", file, call[1])
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d calls", found)
	}
}

// builtin matches a call of a function whose right to be called administrators revoke.
var builtin = regexp.MustCompile(`\b(pg_\w+|set_config)\(`)

// TestAMissingRightOnAnotherSchemaIsNamed: the role has all rights on the schema paddock, and none on the one that it
// serves.
func TestAMissingRightOnAnotherSchemaIsNamed(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if err := migrations.Up(t.Context(), a.owner.Config().ConnString(), "team_b", nil); err != nil {
		t.Fatal(err)
	}
	for _, usage := range []string{"", "grant usage on schema team_b to paddock_app"} {
		if usage != "" {
			a.exec(usage)
		}
		_, err := store.Open(t.Context(), a.url.String(), store.Options{Schema: "team_b"})
		var missing *store.RightsError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), "owner of the schema team_b: grant ") ||
			strings.Contains(err.Error(), "paddock.") || usage == "" && !strings.Contains(err.Error(), "grant usage on schema team_b to ") {
			t.Errorf("after %q: %v", usage, err)
		}
	}
}

// TestWhatOthersCreateInTheSchemaNeedsNoRight: the service starts and is ready without rights on it.
func TestWhatOthersCreateInTheSchemaNeedsNoRight(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := open(t, a.url.String())
	a.exec(`create table paddock.payroll (id serial primary key); alter table paddock.payroll enable row level security;
		create function paddock.pay() returns bigint language sql return 1; revoke execute on function paddock.pay from public;
		revoke all on paddock.payroll, paddock.payroll_id_seq from paddock_app`)
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("ready: %v", err)
	}
	mustAcquire(t, open(t, a.url.String()), acquire("l"))
}

// TestEveryObjectOfTheSchemaIsChecked takes all rights on what a migration creates away.
func TestEveryObjectOfTheSchemaIsChecked(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := open(t, a.url.String())
	a.exec(`revoke all on all tables in schema paddock from paddock_app; revoke all on all sequences in schema paddock from paddock_app;
		revoke all on all functions in schema paddock from public`)
	err := s.Ready(t.Context())
	if !errors.As(err, new(*store.RightsError)) {
		t.Fatalf("ready: %v", err)
	}
	rows, _ := a.owner.Query(t.Context(), `select 'paddock.' || relname from pg_class where relnamespace = 'paddock'::regnamespace
		and relkind in ('r', 'p', 'S') union all select oid::regprocedure::text from pg_proc where pronamespace = 'paddock'::regnamespace`)
	names, failed := pgx.CollectRows(rows, pgx.RowTo[string])
	if failed != nil || len(names) < 15 {
		t.Fatalf("the schema has %q, %v", names, failed)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not in: %v", name, err)
		}
	}
}

// TestADatabaseThatOnlyReadsIsNotReady: an operator has stopped all writes, before a move to another server.
func TestADatabaseThatOnlyReadsIsNotReady(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.exec("alter role paddock_app set default_transaction_read_only = on")
	if s, err := store.Open(t.Context(), a.url.String(), store.Options{}); err == nil || !strings.Contains(err.Error(), "accepts no writes") {
		t.Errorf("open: %v, %v", s, err)
	}
	a.exec("alter role paddock_app reset default_transaction_read_only")
	mustAcquire(t, open(t, a.url.String()), acquire("l"))
}

// hostile are settings of a role with which its own statements would fail or be read wrongly.
var hostile = []string{
	"datestyle = 'German'", "intervalstyle = 'sql_standard'", "timezone = 'Asia/Kathmandu'", "bytea_output = 'escape'",
	"extra_float_digits = -15", "client_encoding = 'LATIN1'", "standard_conforming_strings = off", "array_nulls = off",
	"search_path = 'pg_temp, public'", "statement_timeout = 500", "lock_timeout = 1", "idle_session_timeout = 500",
	"idle_in_transaction_session_timeout = 1", "row_security = on", "client_min_messages = 'error'",
	"default_transaction_isolation = 'serializable'", "default_transaction_deferrable = on", "transform_null_equals = on",
}

// TestSettingsOfTheRoleDoNotMatter runs the service and the commands of operators as a role that sets everything badly.
func TestSettingsOfTheRoleDoNotMatter(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for _, setting := range hostile {
		a.exec("alter role paddock_app set " + setting)
	}
	s := open(t, a.url.String())
	g := mustAcquire(t, s, acquire("l"))
	if events := eventsOf(t, s, "l"); len(events) != 1 || !events[0].At.Equal(g.AcquiredAt) {
		t.Errorf("granted at %v: %+v", g.AcquiredAt, events)
	}
	mustRelease(t, s, g)
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	all, now, err := store.Epochs(t.Context(), a.url.String(), "")
	if err != nil || len(all) != 1 || now.Sub(g.AcquiredAt).Abs() > patience {
		t.Errorf("epochs: %+v at %v, %v", all, now, err)
	}
	if err := store.BeginEpoch(t.Context(), a.url.String(), "", "test", 0); err != nil {
		t.Error(err)
	}
}

// TestThePasswordMayChange rotates the role's password and ends its connections, while a store is open. The server may
// trust all connections, so the name of the role changes with its password.
func TestThePasswordMayChange(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	var current atomic.Pointer[string]
	first := a.url.String()
	current.Store(&first)
	s := replica.Store(t, "", store.Options{DatabaseURL: func() (string, error) { return *current.Load(), nil }})
	mustAcquire(t, s, acquire("before"))
	a.exec("alter role paddock_app rename to paddock_app_2")
	defer a.exec("alter role paddock_app_2 rename to paddock_app")
	a.url.User = url.UserPassword(a.name+"_2", "changed")
	second := a.url.String()
	a.exec("select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'paddock_app_2'")
	during := make(chan error)
	go func() { _, err := s.Acquire(t.Context(), acquire("during")); during <- err }()
	until(t, "the database refuses the old name", func() bool { return s.Ready(t.Context()) != nil })
	current.Store(&second)
	if err := <-during; err != nil {
		t.Errorf("a call during the change: %v", err)
	}
	until(t, "it listens", func() bool {
		return number(t, a.owner, "select count(*) from pg_stat_activity where usename = $1 and query like 'listen%'", a.name+"_2") > 0
	})
}
