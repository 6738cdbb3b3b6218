package main

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// secrets are all secrets that a run has used, and all that was written in it.
type secrets struct {
	*keyedReplica
	mu    sync.Mutex
	known map[string]string // and what each is
	said  map[string]string // by its writer
}

func (s *secrets) add(what, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[text] = what
}

func (s *secrets) leaseID() lock.LeaseID {
	id := uuid.New()
	s.add("a lease_id", id.String())
	s.add("a lease_id without dashes", hex.EncodeToString(id[:]))
	return lock.LeaseID(id)
}

func (s *secrets) addOutput(writer, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said[writer] += text
}

// run runs a command at debug level with the key, and keeps its output, except the secret that it is meant to print.
func (s *secrets) run(key string, printsSecret bool, env map[string]string, args ...string) {
	s.Helper()
	vars := map[string]string{"PADDOCK_URL": s.base, "PADDOCK_KEY": key, "PADDOCK_LOG_LEVEL": "debug"}
	for name, value := range env {
		vars[name] = value
	}
	_, stdout, stderr := call(s.T, vars, args...)
	if !printsSecret {
		s.addOutput("stdout of "+args[0], stdout)
	}
	s.addOutput("stderr of "+args[0], stderr)
}

// TestNoSecretIsWrittenToOutputOrDatabase uses a service at debug level, and searches its output and that of the
// commands for every secret.
func TestNoSecretIsWrittenToOutputOrDatabase(t *testing.T) {
	t.Parallel()
	s := &secrets{known: map[string]string{}, said: map[string]string{}}
	databaseURL := pgtest.URL(t)
	const password = "correct-horse-battery-staple"
	s.add("the database's password", password)
	s.keyedReplica = newKeyedReplicaOn(t, databaseURL+"&password="+password, "--log-level=debug", "--request-timeout=2s")
	locks, reads, gone, admin := s.newKey(access.Lock), s.newKey(access.Read, "billing"), s.newKey(access.Lock), s.newKey(access.Admin)
	s.add("a key that is none", locks.secret[:len(locks.secret)-3]+"xyz")

	var wg sync.WaitGroup
	for _, busy := range []func(){
		func() { s.acquireAndLose(locks.secret) },
		func() { s.runCommands(locks.secret, reads.secret) },
		func() { s.signIn(locks.secret) },
		func() { s.sendBadRequests(locks.secret, reads.secret) },
		func() { s.waitUntilRevoked(gone) },
		func() { s.breakDatabase(databaseURL) },
		func() { s.lookAtTheService(admin.secret) },
	} {
		wg.Go(busy)
	}
	wg.Wait()
	s.acquireAndLose(locks.secret)
	bad := start(t, "serve", "--log-level=debug", "--wait-database=1s",
		"--database-url=postgres://me:"+password+"@127.0.0.1:1/c?password="+password)
	bad.Exit(t)
	s.addOutput("a service without a database", bad.Stdout.String()+bad.Stderr.String())
	s.process.Kill(t)
	s.addOutput("the service", s.process.Stdout.String()+s.process.Stderr.String())
	s.check()
}

// lookAtTheService keeps what operators are told of it, while its database is broken.
func (s *secrets) lookAtTheService(secret string) {
	for range 20 {
		s.run(secret, false, nil, "service", "-o", "json")
		request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.base+"/ui/service", nil)
		mustBeNil(s.T, err)
		request.Header.Set("Authorization", "Bearer "+secret)
		answer, err := s.http.Do(request)
		mustBeNil(s.T, err)
		text, err := io.ReadAll(answer.Body)
		mustBeNil(s.T, errors.Join(err, answer.Body.Close()))
		if !strings.Contains(string(text), "auth-file") {
			s.Errorf("the page of the service has no settings: %s", text)
		}
		s.addOutput("the page of the service", string(text))
	}
}

// newKey creates a key, waits until the replica has read it, and records the secret.
func (s *secrets) newKey(role access.Role, prefixes ...string) issuedKey {
	k := s.newLoadedKey(role, prefixes...)
	s.add("a key", k.secret)
	s.add("the end of a key", k.secret[len(k.secret)-43:])
	return k
}

func (s *secrets) client(secret string) *client.Client {
	locks, err := client.New(client.Options{BaseURL: s.base, Key: secret, HTTP: &http.Client{Timeout: proctest.Patience}})
	if err != nil {
		s.Fatal(err)
	}
	return locks
}

// acquireAndLose causes grants, conflicts, waits and losses. Other tests check the results; here only the texts of
// the errors matter.
func (s *secrets) acquireAndLose(secret string) {
	locks := s.client(secret)
	keep := func(err error) {
		if err != nil {
			s.addOutput("an error", err.Error()+"\n")
		}
	}
	for range 10 {
		id, other := s.leaseID(), s.leaseID()
		_, err := locks.Acquire(s.Context(), lock.Acquire{Locks: lock.One("busy"), Holder: "me", LeaseID: id, TTL: time.Second})
		keep(err)
		_, err = locks.Acquire(s.Context(), lock.Acquire{Locks: lock.One("busy"), Holder: "you", LeaseID: other,
			Wait: 20 * time.Millisecond, KeepPlace: true})
		keep(err)
		_, err = locks.Acquire(s.Context(), lock.Acquire{Locks: lock.One("busy"), Holder: "another", LeaseID: id})
		keep(err)
		_, err = locks.Renew(s.Context(), lock.Renew{Locks: []string{"busy"}, LeaseID: other})
		keep(err)
		keep(locks.Release(s.Context(), lock.Release{Locks: []string{"busy"}, LeaseID: id}))
		keep(locks.Release(s.Context(), lock.Release{Locks: []string{"busy"}, LeaseID: other}))
	}
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
	defer cancel()
	keep(guard.Do(ctx, locks, "guarded", guard.Options{LeaseID: s.leaseID()},
		func(context.Context, *guard.Lease) error { return nil }))
}

// runCommands runs commands that succeed and commands that fail.
func (s *secrets) runCommands(locks, reads string) {
	for _, key := range []string{locks, reads, locks[:len(locks)-3] + "xyz", locks[:20]} {
		id := uuid.UUID(s.leaseID()).String()
		s.run(key, true, nil, "acquire", "commanded", "--retry=0s", "--lease-id", id)
		s.run(key, true, map[string]string{"PADDOCK_LEASE_ID": id}, "renew", "commanded", "--retry=0s")
		for _, args := range [][]string{
			{"get", "commanded", "--retry=0s"}, {"list", "--retry=0s"}, {"queue", "commanded", "--retry=0s"}, {"release", "commanded", "--retry=0s"}, {"release",
				"commanded", "--retry=0s", "--url=http://127.0.0.1:1"},
			{"revoke", "commanded", "--token=1", "--reason=because"}, {"acquire", "commanded",
				"--lease-id=" + id + "0"}, {"list", key}, {"key", "revoke", "--auth-file", s.keys, key},
		} {
			s.run(key, false, map[string]string{"PADDOCK_LEASE_ID": id}, args...)
		}
	}
}

// signIn uses the page with a cookie.
func (s *secrets) signIn(secret string) {
	for _, key := range []string{secret, secret[:len(secret)-3] + "xyz"} {
		form := url.Values{"key": {key}, "back": {"/ui/"}}
		request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.base+"/ui/login",
			strings.NewReader(form.Encode()))
		if err != nil {
			s.Error(err)
			return
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		cookies := s.send(request)
		for _, c := range cookies {
			s.add("a cookie", c.Value)
			request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.base+"/ui/", nil)
			if err != nil {
				s.Error(err)
				return
			}
			request.AddCookie(c)
			s.send(request)
		}
		if (len(cookies) > 0) != (key == secret) {
			s.Errorf("sign-in set %d cookies", len(cookies))
		}
	}
}

// send sends the request, keeps the body of an error, and returns the cookies.
func (s *secrets) send(request *http.Request) []*http.Cookie {
	response, err := s.http.Do(request)
	if err != nil {
		s.addOutput("an error", err.Error())
		return nil
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		s.addOutput("an error", err.Error())
	}
	if response.StatusCode >= http.StatusBadRequest {
		s.addOutput("an answer", string(text))
	}
	return response.Cookies()
}

// sendBadRequests sends secrets in places other than bodies and headers.
func (s *secrets) sendBadRequests(keys ...string) {
	for _, key := range keys {
		id := uuid.UUID(s.leaseID()).String()
		for _, body := range []string{
			`{"lease_id":"` + id + `","lease_id":"` + id + `"}`, `{"holder":"me","lease_id":"` + id,
			`{"leaseid":"` + id + `"}`, `{"lease_id":["` + id + `"]}`,
			`{"holder":"me","ttl_ms":"` + id + `"}`, `["` + key + `"]`, `{"lease_id":"` + id + `0"}`, id,
			`{"holder":"me","lease_id":"` + id + `","ttl_ms":-1}`,
		} {
			for _, path := range []string{
				"/v1/locks/bad/acquire", "/v1/locks/bad/renew", "/v1/locks/bad/release",
				"/v1/acquire", "/v1/renew", "/v1/release",
				"/v1/sessions", "/v1/sessions/renew", "/v1/sessions/close",
			} {
				if strings.HasPrefix(path, "/v1/sessions") {
					body = strings.ReplaceAll(body, "lease_id", "session_id")
				}
				request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.base+path, strings.NewReader(body))
				if err != nil {
					s.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				for _, shown := range []string{"Bearer " + key, "bearer  " + key, "Basic " + key, key, "Bearer " + key + "\x80"} {
					request.Header.Set("Authorization", shown)
					again := request.Clone(s.Context())
					again.Body = io.NopCloser(strings.NewReader(body))
					s.send(again)
				}
			}
		}
	}
}

// waitUntilRevoked lets a call wait with a key until the key is revoked.
func (s *secrets) waitUntilRevoked(k issuedKey) {
	locks := s.client(k.secret)
	held, err := locks.Acquire(s.Context(), lock.Acquire{Locks: lock.One("waited"), Holder: "holder", LeaseID: s.leaseID(),
		TTL: time.Hour})
	s.addOutput("an answer", held.Holder)
	time.AfterFunc(100*time.Millisecond, func() { s.revoke(k.ID) })
	_, waited := locks.Acquire(s.Context(), lock.Acquire{Locks: lock.One("waited"), Holder: "waiter", LeaseID: s.leaseID(),
		Wait: 10 * time.Second})
	if err := errors.Join(err, waited); err != nil {
		s.addOutput("an error", err.Error())
	}
}

// breakDatabase ends the connections to the database, again and again.
func (s *secrets) breakDatabase(databaseURL string) {
	conn, err := pgx.Connect(s.Context(), databaseURL)
	if err != nil {
		s.Error(err)
		return
	}
	for range 5 {
		if _, err := conn.Exec(s.Context(), "select pg_terminate_backend(pid), pg_sleep(0.1) from pg_stat_activity "+
			"where datname = current_database() and pid <> pg_backend_pid()"); err != nil {
			s.Error(err)
		}
	}
	if err := conn.Close(s.Context()); err != nil {
		s.Error(err)
	}
}

// check fails the test for each secret that was written.
func (s *secrets) check() {
	s.Helper()
	bytes := 0
	for writer, text := range s.said {
		bytes += len(text)
		for secret, what := range s.known {
			if i := strings.Index(strings.ToLower(text), strings.ToLower(secret)); i >= 0 {
				line := text[strings.LastIndex(text[:i], "\n")+1:]
				line, _, _ = strings.Cut(line, "\n")
				s.Errorf("%s contains %s:\n%s", writer, what, line)
			}
		}
	}
	s.Logf("%d bytes of %d writers were searched for %d secrets", bytes, len(s.said), len(s.known))
	if log := s.said["the service"]; len(s.known) < 100 || !strings.Contains(log, `"msg":"request"`) ||
		!strings.Contains(log, `"level":"DEBUG"`) {
		s.Errorf("the run was not busy: %d secrets, a log of %d bytes", len(s.known), len(log))
	}
}
