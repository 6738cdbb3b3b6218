package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// infoWhen returns what the store knows of the database, once done is true of it.
func infoWhen(t *testing.T, s *store.Store, what string, done func(paddock.DatabaseInfo) bool) (info paddock.DatabaseInfo) {
	t.Helper()
	until(t, what, func() bool {
		info = s.Info()
		return done(info)
	})
	return info
}

func TestInfoTellsHowTheDatabaseIs(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	start := time.Now().Add(-time.Hour)
	describe := func() paddock.ReplicaInfo {
		return paddock.ReplicaInfo{Host: "node-1", Version: "1.2.3", StartedAt: start, Connections: 7, Streams: 3}
	}
	s := replica.Store(t, url, store.Options{Describe: describe, EventRetention: 48 * time.Hour})
	open(t, url)
	mustAcquire(t, s, acquire("a"))
	waits := acquire("a")
	waits.Wait = lock.MaxWait
	go func() { _, _ = s.Acquire(t.Context(), waits) }() // until the test ends

	waiters := func(i paddock.DatabaseInfo) bool {
		return len(i.Replicas) == 2 && i.Replicas[0].Waiters == 1 && !i.OldestEvent.IsZero()
	}
	info := infoWhen(t, s, "both replicas have sent heartbeats, one with a waiter", waiters)
	if info.Problem != "" || info.Age > time.Minute || time.Since(info.AsOf) > time.Hour {
		t.Errorf("as of %v, %v old, problem %q", info.AsOf, info.Age, info.Problem)
	}
	first, second := info.Replicas[0], info.Replicas[1]
	if up := first.BeatAt.Sub(first.StartedAt); up < time.Hour || up > 2*time.Hour {
		t.Errorf("the first replica has run for %v; want an hour", up)
	}
	if age := info.AsOf.Sub(first.BeatAt); age < 0 || age > time.Minute || len(first.ID) != 16 || first.ID == second.ID {
		t.Errorf("the last heartbeat was %v ago, the ids are %s, %s", age, first.ID, second.ID)
	}
	first.ID, first.StartedAt, first.BeatAt = "", time.Time{}, time.Time{}
	if want := (paddock.ReplicaInfo{Self: true, Host: "node-1", Version: "1.2.3", Alive: true, Connections: 7, Waiters: 1, Streams: 3}); first != want {
		t.Errorf("the first replica is %+v; want %+v", first, want)
	}
	if second.Self || !second.Alive || second.Host != "" {
		t.Errorf("the second replica is %+v", second)
	}
	if e := info.Epoch; e.Number != 1 || e.Reason != "installed" || e.BeganAt.IsZero() || len(e.Timeline) != 8 || !e.GrantsPausedUntil.IsZero() {
		t.Errorf("the epoch is %+v", e)
	}
	if v := info.Server; v.Standby || v.Version == "" || v.StartedAt.IsZero() || v.Address == "" && !strings.Contains(url, "host=") {
		t.Errorf("the server is %+v", v)
	}
	largest := slices.IsSortedFunc(info.Tables, func(a, b paddock.TableInfo) int { return int(b.Bytes - a.Bytes) })
	if !largest || !slices.ContainsFunc(info.Tables, func(t paddock.TableInfo) bool { return t.Name == "records" && t.Bytes > 0 }) {
		t.Errorf("the tables are %v", info.Tables)
	}
	if info.EventRetention != 48*time.Hour || info.OldestEvent.After(info.AsOf) || len(info.Hidden) != 0 {
		t.Errorf("retention %v, oldest event %v, hidden %q", info.EventRetention, info.OldestEvent, info.Hidden)
	}
}

// TestInfoOfAPauseOfGrants: until when, and why.
func TestInfoOfAPauseOfGrants(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	mustAcquire(t, s, acquire("a"))
	if err := store.BeginEpoch(t.Context(), url, "", "the volume was restored", 0); err != nil {
		t.Fatal(err)
	}
	info := infoWhen(t, s, "the epoch is known", func(i paddock.DatabaseInfo) bool { return i.Epoch.Number == 2 })
	if e := info.Epoch; !strings.Contains(e.Reason, "the volume was restored") || !e.GrantsPausedUntil.After(info.AsOf) {
		t.Errorf("the epoch is %+v", e)
	}
	if e := info.Earlier; len(e) != 1 || e[0].Number != 1 || e[0].Reason != "installed" || !e[0].BeganAt.Before(info.Epoch.BeganAt) {
		t.Errorf("the earlier epochs are %+v", e)
	}
}

// TestInfoWithoutRightsSaysWhatIsHidden, and what to do.
func TestInfoWithoutRightsSaysWhatIsHidden(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	s := open(t, a.url.String())
	grant := fmt.Sprintf(`The standbys cannot be seen. As a superuser, run: grant pg_monitor to "%s";`, a.name)
	if info := s.Info(); info.Problem != "" || !slices.Equal(info.Hidden, []string{grant}) || len(info.Tables) == 0 {
		t.Errorf("problem %q, hidden %q, tables %v", info.Problem, info.Hidden, info.Tables)
	}
	a.exec("grant pg_monitor to paddock_app")
	infoWhen(t, s, "nothing is hidden", func(i paddock.DatabaseInfo) bool { return len(i.Hidden) == 0 })

	const sizes = "execute on function pg_total_relation_size(regclass)"
	exec(t, a.owner, "revoke "+sizes+" from public")
	denied := infoWhen(t, s, "the sizes are denied", func(i paddock.DatabaseInfo) bool { return len(i.Hidden) == 1 })
	if denied.Problem != "" || denied.Tables != nil || !strings.Contains(denied.Hidden[0], "permission denied for function pg_total_relation_size") {
		t.Errorf("problem %q, hidden %q, tables %v", denied.Problem, denied.Hidden, denied.Tables)
	}
	exec(t, a.owner, "grant "+sizes+" to public")
	infoWhen(t, s, "nothing is hidden any more", func(i paddock.DatabaseInfo) bool { return len(i.Hidden) == 0 })

	locked := connect(t, pgtestURLOf(a))
	exec(t, locked, "begin; lock table paddock.fenced in access exclusive mode")
	info := infoWhen(t, s, "the sizes are hidden", func(i paddock.DatabaseInfo) bool { return len(i.Hidden) == 1 })
	if info.Problem != "" || info.Tables != nil || !strings.Contains(info.Hidden[0], "another session has locked a table") {
		t.Errorf("problem %q, hidden %q, tables %v", info.Problem, info.Hidden, info.Tables)
	}
	exec(t, locked, "rollback")
	infoWhen(t, s, "nothing is hidden again", func(i paddock.DatabaseInfo) bool { return len(i.Hidden) == 0 && len(i.Tables) > 0 })
}

// pgtestURLOf returns the URL of the owner of the account's tables.
func pgtestURLOf(a *account) string { return a.owner.Config().ConnString() }

// TestInfoTellsTheLagOfStandbys, of a connection that takes the log and never confirms any of it.
func TestInfoTellsTheLagOfStandbys(t *testing.T) {
	t.Parallel()
	_, url := pgtest.Server(t)
	s := open(t, url)
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["replication"], config.RuntimeParams["application_name"] = "true", "spare"
	standby, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = standby.Conn().Close() })
	at, err := standby.Exec(t.Context(), "IDENTIFY_SYSTEM").ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	standby.Frontend().Send(&pgproto3.Query{String: "START_REPLICATION PHYSICAL " + string(at[0].Rows[0][2])})
	if err := standby.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	info := infoWhen(t, s, "the standby streams", func(i paddock.DatabaseInfo) bool {
		return len(i.Standbys) == 1 && i.Standbys[0].State == "streaming"
	})
	if got := info.Standbys[0]; got.Name != "spare" || got.Sync != "async" || got.LagBytes != nil || got.Lag != nil {
		t.Errorf("the standby is %+v", got)
	}
}

// TestInfoWhileTheDatabaseIsAway: what was known, how old it is, and why there is nothing newer.
func TestInfoWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	db, url := pgtest.Server(t)
	s := open(t, url)
	before := infoWhen(t, s, "it is read", func(i paddock.DatabaseInfo) bool { return len(i.Replicas) == 1 })
	if err := db.Kill(); err != nil {
		t.Fatal(err)
	}
	away := infoWhen(t, s, "it is away", func(i paddock.DatabaseInfo) bool { return i.Problem != "" })
	if away.AsOf.Before(before.AsOf) || away.Age <= 0 || len(away.Replicas) != 1 || away.Epoch.Number != 1 {
		t.Errorf("it is %v old, with %+v; before it was of %v", away.Age, away, before.AsOf)
	}
	if strings.ContainsAny(away.Problem, "\n\t") || !strings.HasSuffix(away.Problem, ".") {
		t.Errorf("the problem is no sentence: %q", away.Problem)
	}
	began := time.Now()
	for range 20 {
		s.Info()
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("20 calls took %v", took)
	}
	if err := db.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	infoWhen(t, s, "it is back", func(i paddock.DatabaseInfo) bool { return i.Problem == "" && i.AsOf.After(away.AsOf) })
}

// TestInfoOfADatabaseThatIsStuck comes nevertheless, and again when it goes on.
func TestInfoOfADatabaseThatIsStuck(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, stuck := open(t, url), connect(t, url)
	infoWhen(t, s, "it is read", func(i paddock.DatabaseInfo) bool { return len(i.Replicas) == 1 })
	exec(t, stuck, "begin; lock table paddock.epochs in access exclusive mode")
	away := infoWhen(t, s, "it is stuck", func(i paddock.DatabaseInfo) bool { return i.Problem != "" })
	if !strings.HasPrefix(away.Problem, "The database does not answer within ") || len(away.Replicas) != 1 {
		t.Errorf("it is %+v", away)
	}
	exec(t, stuck, "rollback")
	infoWhen(t, s, "it goes on", func(i paddock.DatabaseInfo) bool { return i.Problem == "" })
}

// TestInfoIsKnownAlthoughNobodyAsked before the outage.
func TestInfoIsKnownAlthoughNobodyAsked(t *testing.T) {
	t.Parallel()
	db, url := pgtest.Server(t)
	outside := connect(t, url)
	s := open(t, url)
	until(t, "the replica has read all by itself", func() bool {
		return number(t, outside, `select count(*) from pg_stat_activity
			where pid <> pg_backend_pid() and state = 'idle' and query like '%pg_total_relation_size%'`) > 0
	})
	if err := db.Kill(); err != nil {
		t.Fatal(err)
	}
	away := infoWhen(t, s, "it is away", func(i paddock.DatabaseInfo) bool { return i.Problem != "" })
	if away.AsOf.IsZero() || len(away.Tables) == 0 {
		t.Errorf("nothing is known: %+v", away)
	}
}

// TestInfoSaysWhyTheDatabaseIsAway, and not the password of the URL.
func TestInfoSaysWhyTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	const password = "hunter2-hunter2"
	a.url.User = nil
	query := a.url.Query()
	query.Set("user", a.name)
	query.Set("password", password)
	query.Set("target_session_attrs", "read-write")
	a.url.RawQuery = query.Encode()
	s := open(t, a.url.String())
	infoWhen(t, s, "it is read", func(i paddock.DatabaseInfo) bool { return i.Problem == "" })
	a.exec("alter role paddock_app nologin")
	const disconnect = "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'paddock_app'"
	a.exec(disconnect)
	away := infoWhen(t, s, "it is refused", func(i paddock.DatabaseInfo) bool { return i.Problem != "" })
	if strings.Contains(fmt.Sprintf("%+v", away), password) || !strings.Contains(away.Problem, a.name) {
		t.Errorf("the problem is %q", away.Problem)
	}
	a.exec("alter role paddock_app login")
	infoWhen(t, s, "it is read again", func(i paddock.DatabaseInfo) bool { return i.Problem == "" })
	a.exec("alter role paddock_app set default_transaction_read_only = on")
	a.exec(disconnect)
	infoWhen(t, s, "it accepts no writes", func(i paddock.DatabaseInfo) bool {
		return strings.Contains(i.Problem, "accepts no writes: it is a standby, or default_transaction_read_only is set; promote it")
	})
}
