package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
)

func TestMigrateUpAndDown(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DATABASE_URL": pgtest.EmptyURL(t)}
	latest := migrations.Latest()
	all, tooMany := fmt.Sprintf("--steps=%d", latest), fmt.Sprintf("--steps=%d", latest+1)
	tooHigh := fmt.Sprintf("--to=%d", latest+1)
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"migrate", "version"}, exitFailed, "The schema paddock is at version 0;"},
		{[]string{"serve", "--listen=127.0.0.1:0"}, exitFailed, "run paddock migrate up"},
		{[]string{"migrate", "up"}, exitOK, fmt.Sprintf("The schema paddock was at version 0 and is now at version %d", latest)},
		{[]string{"migrate", "up"}, exitOK, "The schema paddock is already at version"},
		{[]string{"migrate", "version"}, exitOK, fmt.Sprintf("at version %d; this binary is for version %[1]d", latest)},
		{[]string{"migrate", "down", "--yes", tooMany}, exitFailed, "cannot go down"},
		{[]string{"migrate", "down", "--yes"}, exitUsage, "--to"},
		{[]string{"migrate", "down", "--yes", "--to=1", "--steps=1"}, exitUsage, "--to"},
		{[]string{"migrate", "down", "--yes", "--to=-1"}, exitUsage, "--to"},
		{[]string{"migrate", "down", "--yes", tooHigh}, exitFailed, "cannot go down"},
		{[]string{"migrate", "down", "--yes", "--to=0"}, exitOK, fmt.Sprintf("was at version %d and is now at version 0", latest)},
		{[]string{"migrate", "down", "--yes", "--to=0"}, exitOK, "already at version 0"},
		{[]string{"migrate", "up"}, exitOK, fmt.Sprintf("was at version 0 and is now at version %d", latest)},
		{[]string{"migrate", "down", all}, exitUsage, "--yes"},
		{[]string{"migrate", "down", "--yes", all}, exitOK,
			fmt.Sprintf("was at version %d and is now at version 0", latest)},
	} {
		code, stdout, stderr := call(t, env, step.args...)
		if code != step.code || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%v: exit code %d, want %d and %q in:\n%s%s", step.args, code, step.code, step.want, stdout, stderr)
		}
	}
}

// TestMigrateSaysWhatItWaitsFor: for another migration, for a session that keeps a table locked, and for a database that
// does not answer.
func TestMigrateSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.EmptyURL(t)
	conn := pgtest.Connect(t, databaseURL)
	migrate := func(wait string) *process {
		p := start(t, "migrate", "up", "--database-url", databaseURL)
		p.Stderr.Await(t, `"msg":"(`+wait+`)`)
		return p
	}
	pgtest.Exec(t, conn, "select pg_advisory_lock(x'706164646f636b'::bigint)") // of a process that migrates
	second := migrate("another process is migrating this schema; waiting for it")
	pgtest.Exec(t, conn, "select pg_advisory_unlock_all()")
	if code := second.Exit(t); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, second.Stderr)
	}
	mustBeNil(t, migrations.DownTo(t.Context(), databaseURL, "", 0, nil))
	pgtest.Exec(t, conn, "begin; lock table paddock.schema_migrations in share mode")
	late := migrate("waiting for the database to migrate the schema")
	pgtest.Exec(t, conn, "commit")
	if code := late.Exit(t); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, late.Stderr)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts no connection, and the kernel opens them
	mustBeNil(t, err)
	defer mustClose(t, silent)
	databaseURL = "postgres://me@" + silent.Addr().String() + "/paddock"
	p := migrate("waiting for an answer of the database")
	p.Signal(t, syscall.SIGTERM)
	p.Exit(t)
}

func TestServeMigratesWithTheFlag(t *testing.T) {
	t.Parallel()
	expectReady(t, serveHere(t, pgtest.EmptyURL(t), "--migrate"))
}

// TestServeRunsOnANewerSchema stands for a replica of the previous release that restarts after a migration.
func TestServeRunsOnANewerSchema(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.URL(t)
	pgtest.Exec(t, pgtest.Connect(t, databaseURL), "update paddock.schema_migrations set version = version + 1")
	expectReady(t, serveHere(t, databaseURL))
	expectReady(t, serveHere(t, databaseURL, "--migrate"))
}

// TestOldReplicaIsRefusedByANewerSchema migrates, under a replica, to a made-up release that keeps its locks elsewhere.
// The replica answers no call wrongly and none with 500, is not ready, and says why; after the way back it goes on.
func TestOldReplicaIsRefusedByANewerSchema(t *testing.T) {
	t.Parallel()
	const sentence = "his replica is of an earlier release than the schema of its database"
	databaseURL := pgtest.URL(t)
	p, base := startServe(t, databaseURL)
	held := acquire(t, base, lock.Acquire{Locks: lock.One("held"), Holder: "me", LeaseID: lock.LeaseID(uuid.New()), TTL: time.Hour})
	pgtest.Exec(t, pgtest.Connect(t, databaseURL), "alter table paddock.records rename to locks; update paddock.schema_migrations set version = version + 1")
	calls := func(base string) {
		refusesAll(t, base, held.ID, sentence)
		expectNotReady(t, base)
	}
	calls(base)
	if log := p.Stderr.String(); !strings.Contains(log, sentence+"; stop it and start the new release") {
		t.Error("the log does not say what to do")
	}
	_, again := startServe(t, databaseURL)
	calls(again)
	pgtest.Exec(t, pgtest.Connect(t, databaseURL), "alter table paddock.locks rename to records; update paddock.schema_migrations set version = version - 1")
	becomesReady(t, base)
	renewed, err := replica.Connect(t, client.Options{BaseURL: base}).Renew(t.Context(), lock.Renew{Locks: []string{"held"}, LeaseID: held.ID})
	if err != nil || renewed.Token != held.Token {
		t.Errorf("after the way back: %+v, %v", renewed, err)
	}
}

// refusesAll checks that each kind of call is answered ErrUnavailable with the sentence. held is of a lease of the lock held.
func refusesAll(t *testing.T, base string, held lock.LeaseID, sentence string) {
	t.Helper()
	service := replica.Connect(t, client.Options{BaseURL: base})
	for what, call := range map[string]func() error{
		"acquire": func() error {
			_, err := service.Acquire(t.Context(), lock.Acquire{Locks: lock.One("free"), Holder: "me", LeaseID: lock.LeaseID(uuid.New())})
			return err
		},
		"renew": func() error {
			_, err := service.Renew(t.Context(), lock.Renew{Locks: []string{"held"}, LeaseID: held})
			return err
		},
		"release": func() error {
			return service.Release(t.Context(), lock.Release{Locks: []string{"held"}, LeaseID: held})
		},
		"read": func() error { _, err := service.Lock(t.Context(), "held"); return err },
		"list": func() error { _, err := service.Locks(t.Context(), paddock.LockQuery{}); return err },
	} {
		var refusal *lock.Error
		if err := call(); !errors.As(err, &refusal) || refusal.Code != lock.ErrUnavailable || refusal.RetryAfter == 0 ||
			!strings.Contains(refusal.Detail, sentence) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// expectNotReady checks that the replica, which can decide nothing, says so.
func expectNotReady(t *testing.T, base string) (answer string) {
	t.Helper()
	code, _, stderr := call(t, nil, "healthcheck", "--url", base)
	if code == exitOK {
		t.Errorf("a replica is ready that can decide nothing: %s", stderr)
	}
	return stderr
}

// becomesReady waits until the replica is ready: its answer may be one from before.
func becomesReady(t *testing.T, base string) {
	t.Helper()
	enough := time.After(proctest.Patience)
	for code := exitFailed; code != exitOK; code, _, _ = call(t, nil, "healthcheck", "--url", base) {
		select {
		case <-enough:
			t.Fatal("the replica is not ready once its tables are as it needs them")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestAReplicaWithoutItsTablesSaysWhatToDo drops the schema of one replica, migrates that of another down, and drops a
// table of a third, while they serve. Once a schema is there again, its replica goes on.
func TestAReplicaWithoutItsTablesSaysWhatToDo(t *testing.T) {
	t.Parallel()
	databaseURL := pgtest.EmptyURL(t)
	execute := func(statement string) func(*testing.T) {
		return func(t *testing.T) { pgtest.Exec(t, pgtest.Connect(t, databaseURL), statement) }
	}
	migrateDown := func(t *testing.T) { mustBeNil(t, migrations.DownTo(t.Context(), databaseURL, "down", 0, nil)) }
	for schema, c := range map[string]struct {
		lose func(*testing.T)
		do   string
	}{
		"dropped": {execute("drop schema dropped cascade"), "or run paddock migrate up --schema dropped: ERROR"},
		"down":    {migrateDown, "or run paddock migrate up --schema down: ERROR"},
		"less":    {execute("drop table less.records cascade"), "restore the schema less from a backup: ERROR"},
	} {
		t.Run(schema, func(t *testing.T) {
			t.Parallel()
			p, base := startServe(t, databaseURL, "--migrate", "--schema="+schema)
			held := acquire(t, base, lock.Acquire{Locks: lock.One("held"), Holder: "me", LeaseID: lock.LeaseID(uuid.New()), TTL: time.Hour})
			acquire(t, base, lock.Acquire{Locks: lock.One("swept"), Holder: "me", LeaseID: lock.LeaseID(uuid.New()), TTL: 10 * time.Second})
			c.lose(t)
			refusesAll(t, base, held.ID, "The database lacks tables or functions that the service needs; the log says what an operator must do.")
			if log := p.Stderr.String(); !strings.Contains(log, c.do) {
				t.Errorf("the log does not say %q:\n%s", c.do, log)
			}
			p.Stderr.Await(t, `"msg":"cannot sweep lock",.*"error":"(tables or functions of the service are missing)`)
			answer := expectNotReady(t, base)
			if schema == "less" {
				if !strings.Contains(answer, "lacks tables, functions or triggers of the service: records. Restore the schema from a backup.") {
					t.Errorf("/readyz does not say what is missing: %s", answer)
				}
				return
			}
			mustBeNil(t, migrations.Up(t.Context(), databaseURL, schema, nil))
			becomesReady(t, base)
		})
	}
}
