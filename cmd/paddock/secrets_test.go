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
	"github.com/paddock-lock/paddock/lock"
)

// The secrets are all those that a run has used, and what was written in it.
type secrets struct {
	*house
	mu    sync.Mutex
	known map[string]string // and what each is
	said  map[string]string // and by whom
}

func (s *secrets) secret(what, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[text] = what
}

func (s *secrets) leaseID() lock.LeaseID {
	id := uuid.New()
	s.secret("a lease_id", id.String())
	s.secret("a lease_id without dashes", hex.EncodeToString(id[:]))
	return lock.LeaseID(id)
}

func (s *secrets) wrote(who, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said[who] += text
}

// runs runs a command at the level debug, with the key, and keeps what it writes, without
// what it is to print.
func (s *secrets) runs(key string, printsSecret bool, env map[string]string, args ...string) {
	s.Helper()
	vars := map[string]string{"PADDOCK_URL": s.base, "PADDOCK_KEY": key, "PADDOCK_LOG_LEVEL": "debug"}
	for name, value := range env {
		vars[name] = value
	}
	_, stdout, stderr := call(s.T, vars, args...)
	if !printsSecret {
		s.wrote("stdout of "+args[0], stdout)
	}
	s.wrote("stderr of "+args[0], stderr)
}

// TestNoSecretIsWrittenAnywhere has a busy service at the level debug, and greps what it and the commands
// have written for every secret that was used.
func TestNoSecretIsWrittenAnywhere(t *testing.T) {
	t.Parallel()
	s := &secrets{known: map[string]string{}, said: map[string]string{}}
	databaseURL := pgtest.URL(t)
	const password = "correct-horse-battery-staple"
	s.secret("the database's password", password)
	s.house = lockUpOn(t, databaseURL+"&password="+password, "--log-level=debug", "--request-timeout=2s")
	locks, reads, gone := s.noted(access.Lock), s.noted(access.Read, "billing"), s.noted(access.Lock)
	s.secret("a key that is none", locks.secret[:len(locks.secret)-3]+"xyz")

	var wg sync.WaitGroup
	for _, busy := range []func(){
		func() { s.holdsAndLoses(locks.secret) },
		func() { s.commands(locks.secret, reads.secret) },
		func() { s.signsIn(locks.secret) },
		func() { s.badRequests(locks.secret, reads.secret) },
		func() { s.waitsUntilRevoked(gone) },
		func() { s.cutsOff(databaseURL) },
	} {
		wg.Go(busy)
	}
	wg.Wait()
	s.holdsAndLoses(locks.secret)
	bad := start(t, "serve", "--log-level=debug", "--wait-database=1s", "--database-url=postgres://me:"+password+"@127.0.0.1:1/c?password="+password)
	bad.exit(t)
	s.wrote("a service without a database", bad.stdout.String()+bad.stderr.String())
	s.process.kill(t)
	s.wrote("the service", s.process.stdout.String()+s.process.stderr.String())
	s.grep()
}

// lockUpOn is lockUp on that database.
func lockUpOn(t *testing.T, databaseURL string, args ...string) *house {
	t.Helper()
	h := &house{T: t, keys: t.TempDir() + "/keys.json", http: &http.Client{Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	h.revoke(h.key(access.Read).ID)
	h.process, h.base = startServe(t, databaseURL, append([]string{"--auth-file", h.keys}, args...)...)
	return h
}

// noted is known, and notes the secret.
func (s *secrets) noted(role access.Role, prefixes ...string) issued {
	k := s.house.known(role, prefixes...)
	s.secret("a key", k.secret)
	s.secret("the end of a key", k.secret[len(k.secret)-43:])
	return k
}

func (s *secrets) client(secret string) *client.Client {
	locks, err := client.New(client.Options{BaseURL: s.base, Key: secret, HTTP: &http.Client{Timeout: patience}})
	if err != nil {
		s.Fatal(err)
	}
	return locks
}

// holdsAndLoses goes through grants, conflicts, waits and losses. What comes of them is
// looked at elsewhere; errors are kept for what they say.
func (s *secrets) holdsAndLoses(secret string) {
	locks := s.client(secret)
	keep := func(err error) {
		if err != nil {
			s.wrote("an error", err.Error()+"\n")
		}
	}
	for range 10 {
		id, other := s.leaseID(), s.leaseID()
		_, err := locks.Acquire(s.Context(), lock.Acquire{Name: "busy", Holder: "me", LeaseID: id, TTL: time.Second})
		keep(err)
		_, err = locks.Acquire(s.Context(), lock.Acquire{Name: "busy", Holder: "you", LeaseID: other, Wait: 20 * time.Millisecond, KeepPlace: true})
		keep(err)
		_, err = locks.Acquire(s.Context(), lock.Acquire{Name: "busy", Holder: "another", LeaseID: id})
		keep(err)
		_, err = locks.Renew(s.Context(), lock.Renew{Name: "busy", LeaseID: other})
		keep(err)
		keep(locks.Release(s.Context(), lock.Release{Name: "busy", LeaseID: id}))
		keep(locks.Release(s.Context(), lock.Release{Name: "busy", LeaseID: other}))
	}
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
	defer cancel()
	keep(guard.Do(ctx, locks, "guarded", guard.Options{LeaseID: s.leaseID()}, func(context.Context, *guard.Lease) error { return nil }))
}

// commands runs commands that work, and commands that fail.
func (s *secrets) commands(locks, reads string) {
	for _, key := range []string{locks, reads, locks[:len(locks)-3] + "xyz", locks[:20]} {
		id := uuid.UUID(s.leaseID()).String()
		s.runs(key, true, nil, "acquire", "commanded", "--retry=0s", "--lease-id", id)
		s.runs(key, true, map[string]string{"PADDOCK_LEASE_ID": id}, "renew", "commanded", "--retry=0s")
		for _, args := range [][]string{
			{"get", "commanded"}, {"list"}, {"queue", "commanded"}, {"release", "commanded", "--retry=0s"}, {"release", "commanded", "--retry=0s", "--url=http://127.0.0.1:1"},
			{"revoke", "commanded", "--token=1", "--reason=because"}, {"acquire", "commanded", "--lease-id=" + id + "0"}, {"list", key}, {"key", "revoke", "--auth-file", s.keys, key},
		} {
			s.runs(key, false, map[string]string{"PADDOCK_LEASE_ID": id}, args...)
		}
	}
}

// signsIn goes to the page with a cookie.
func (s *secrets) signsIn(secret string) {
	for _, key := range []string{secret, secret[:len(secret)-3] + "xyz"} {
		form := url.Values{"key": {key}, "back": {"/ui/"}}
		request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.base+"/ui/login", strings.NewReader(form.Encode()))
		if err != nil {
			s.Error(err)
			return
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		cookies := s.sends(request)
		for _, c := range cookies {
			s.secret("a cookie", c.Value)
			request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.base+"/ui/", nil)
			if err != nil {
				s.Error(err)
				return
			}
			request.AddCookie(c)
			s.sends(request)
		}
		if (len(cookies) > 0) != (key == secret) {
			s.Errorf("%d cookies came of a sign-in", len(cookies))
		}
	}
}

// sends sends the request, keeps what is answered with an error, and returns the cookies.
func (s *secrets) sends(request *http.Request) []*http.Cookie {
	response, err := s.http.Do(request)
	if err != nil {
		s.wrote("an error", err.Error())
		return nil
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		s.wrote("an error", err.Error())
	}
	if response.StatusCode >= http.StatusBadRequest {
		s.wrote("an answer", string(text))
	}
	return response.Cookies()
}

// badRequests sends secrets where none belong, but in bodies and headers.
func (s *secrets) badRequests(keys ...string) {
	for _, key := range keys {
		id := uuid.UUID(s.leaseID()).String()
		for _, body := range []string{
			`{"lease_id":"` + id + `","lease_id":"` + id + `"}`, `{"holder":"me","lease_id":"` + id, `{"leaseid":"` + id + `"}`, `{"lease_id":["` + id + `"]}`,
			`{"holder":"me","ttl_ms":"` + id + `"}`, `["` + key + `"]`, `{"lease_id":"` + id + `0"}`, id, `{"holder":"me","lease_id":"` + id + `","ttl_ms":-1}`,
		} {
			for _, call := range []string{"acquire", "renew", "release"} {
				request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.base+"/v1/locks/bad/"+call, strings.NewReader(body))
				if err != nil {
					s.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				for _, shown := range []string{"Bearer " + key, "bearer  " + key, "Basic " + key, key, "Bearer " + key + "\x80"} {
					request.Header.Set("Authorization", shown)
					again := request.Clone(s.Context())
					again.Body = io.NopCloser(strings.NewReader(body))
					s.sends(again)
				}
			}
		}
	}
}

// waitsUntilRevoked has a call wait under a key until that is revoked.
func (s *secrets) waitsUntilRevoked(k issued) {
	locks := s.client(k.secret)
	held, err := locks.Acquire(s.Context(), lock.Acquire{Name: "waited", Holder: "holder", LeaseID: s.leaseID(), TTL: time.Hour})
	s.wrote("an answer", held.Holder)
	time.AfterFunc(100*time.Millisecond, func() { s.revoke(k.ID) })
	_, waited := locks.Acquire(s.Context(), lock.Acquire{Name: "waited", Holder: "waiter", LeaseID: s.leaseID(), Wait: 10 * time.Second})
	if err := errors.Join(err, waited); err != nil {
		s.wrote("an error", err.Error())
	}
}

// cutsOff ends the connections to the database, again and again.
func (s *secrets) cutsOff(databaseURL string) {
	conn, err := pgx.Connect(s.Context(), databaseURL)
	if err != nil {
		s.Error(err)
		return
	}
	for range 5 {
		if _, err := conn.Exec(s.Context(), "select pg_terminate_backend(pid), pg_sleep(0.1) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"); err != nil {
			s.Error(err)
		}
	}
	if err := conn.Close(s.Context()); err != nil {
		s.Error(err)
	}
}

// grep fails the test for each secret that was written.
func (s *secrets) grep() {
	s.Helper()
	bytes := 0
	for who, text := range s.said {
		bytes += len(text)
		for secret, what := range s.known {
			if i := strings.Index(strings.ToLower(text), strings.ToLower(secret)); i >= 0 {
				line := text[strings.LastIndex(text[:i], "\n")+1:]
				line, _, _ = strings.Cut(line, "\n")
				s.Errorf("%s shows %s:\n%s", who, what, line)
			}
		}
	}
	s.Logf("%d bytes of %d writers were searched for %d secrets", bytes, len(s.said), len(s.known))
	if log := s.said["the service"]; len(s.known) < 100 || !strings.Contains(log, `"msg":"request"`) || !strings.Contains(log, `"level":"DEBUG"`) {
		s.Errorf("the run was not busy: %d secrets, a log of %d bytes", len(s.known), len(log))
	}
}
