package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// lines returns the log lines with this message.
func (s harness) lines(message string) []map[string]any {
	s.t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(s.log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			s.t.Fatal(err)
		}
		if fields["msg"] == message {
			lines = append(lines, fields)
		}
	}
	return lines
}

func TestAccessLogHasNoSecrets(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{Service: inMemory(), release: func(lock.Release) error { return errors.New("the database is gone") }}})
	acquired := s.post("/v1/locks/a%3Ab/acquire", `{"holder": "the-holder", "lease_id": "`+leaseID+`"}`)
	s.post("/v1/locks/a:b/renew", oneID)
	s.post("/v1/locks/a:b/release", oneID)
	s.post("/v1/locks/a:b/release", `{"lease_id": "`+leaseID+`", "lease_id": "`+leaseID+`"}`)
	s.post("/v1/locks/a:b/release", `{"lease_id": "`+leaseID+`x"}`)
	s.get("/v1/locks?cursor=" + leaseID)
	s.get("/livez")
	log := s.log.String()
	for _, secret := range []string{leaseID, "the-holder", strings.ReplaceAll(leaseID, "-", "")} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %s: %s", secret, log)
		}
	}
	lines := s.lines("request")
	if len(lines) != 7 {
		t.Fatalf("%d lines: %s", len(lines), log)
	}
	for name, want := range map[string]any{
		"level": "DEBUG", "request_id": acquired.Header.Get("X-Request-Id"), "method": "POST", "path": "/v1/locks/a:b/acquire",
		"route": "/v1/locks/{name}/acquire", "status": 201.0, "bytes": float64(len(acquired.text)),
	} {
		if lines[0][name] != want {
			t.Errorf("%s is %v, want %v", name, lines[0][name], want)
		}
	}
}

func TestRequestIDsOfClientsAreIgnored(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	r := s.request(http.MethodGet, "/livez", "")
	r.Header.Set("X-Request-Id", "0e4a1f60-93a2-4d2c-9f53-b2c54a9f0f51")
	first, second := s.do(r).Header.Get("X-Request-Id"), s.get("/livez").Header.Get("X-Request-Id")
	if first == second || first == r.Header.Get("X-Request-Id") {
		t.Errorf("ids %s, %s", first, second)
	}
}

func TestPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Locks: &fake{acquire: func(context.Context, lock.Acquire) (lock.Grant, error) { panic("hunter2") }}})
	got := s.post(acquirePath, `{"holder": "a"}`)
	got.want(t, http.StatusInternalServerError, map[string]any{"code": "internal"})
	lines := s.lines("request refused")
	if len(lines) != 1 || strings.Contains(got.text, "hunter2") {
		t.Fatalf("%s\n%s", got.text, s.log)
	}
	cause, _ := lines[0]["cause"].(string)
	if !strings.Contains(cause, "hunter2") || !strings.Contains(cause, "observe_test.go") || lines[0]["level"] != "ERROR" {
		t.Errorf("logged %v", lines[0])
	}
}

func TestPanicDuringTheAnswerClosesTheConnection(t *testing.T) {
	t.Parallel()
	ui := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write([]byte("half"))
		if err = errors.Join(err, http.NewResponseController(w).Flush()); err != nil {
			t.Error(err)
		}
		panic("hunter2")
	})
	s := serve(t, server.Options{UI: ui})
	if got, err := s.client.Do(s.request(http.MethodGet, "/ui/", "")); err == nil {
		t.Errorf("answered %v", got)
	}
	if log := s.log.String(); !strings.Contains(log, "hunter2") {
		t.Errorf("log: %s", log)
	}
}

func TestReadinessFollowsTheProbe(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Ready: func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the probe may hang")
		}
		return errors.New("hunter2")
	}})
	got := s.get("/readyz")
	got.want(t, http.StatusServiceUnavailable, map[string]any{"code": "unavailable"})
	if strings.Contains(got.text, "hunter2") || !strings.Contains(s.log.String(), "hunter2") {
		t.Errorf("%s\n%s", got.text, s.log)
	}
	s.get("/livez").want(t, http.StatusOK, map[string]any{"status": "ok"})
}
