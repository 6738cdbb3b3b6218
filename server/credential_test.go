package server_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/server"
)

// TestAuthorizationIsParsedStrictly replaces KEY by a valid key. Errors must not repeat the header.
func TestAuthorizationIsParsedStrictly(t *testing.T) {
	t.Parallel()
	s, _, _, k := serveWithKeys(t)
	for name, c := range map[string]struct {
		headers []string
		code    string // empty: accepted
		detail  string
	}{
		"valid":                         {headers: []string{"Bearer KEY"}},
		"in lower case":                 {headers: []string{"bearer KEY"}},
		"in capitals":                   {headers: []string{"BEARER KEY"}},
		"several spaces between":        {headers: []string{"Bearer   KEY"}},
		"spaces around":                 {headers: []string{"  Bearer KEY "}},
		"no header":                     {code: "key_missing", detail: "Authorization: Bearer KEY"},
		"an empty header":               {headers: []string{""}, code: "key_invalid", detail: "does not start with Bearer"},
		"the scheme alone":              {headers: []string{"Bearer"}, code: "key_missing", detail: "no key after"},
		"the scheme and a space":        {headers: []string{"Bearer  "}, code: "key_missing", detail: "no key after"},
		"the key alone":                 {headers: []string{"KEY"}, code: "key_invalid", detail: "does not start with Bearer"},
		"another scheme":                {headers: []string{"Basic cGFkZG9jazpLRVk="}, code: "key_invalid", detail: "does not start with Bearer"},
		"a longer scheme":               {headers: []string{"Bearers KEY"}, code: "key_invalid", detail: "does not start with Bearer"},
		"a tab between":                 {headers: []string{"Bearer\tKEY"}, code: "key_invalid", detail: "does not start with Bearer"},
		"a colon after the scheme":      {headers: []string{"Bearer: KEY"}, code: "key_invalid", detail: "does not start with Bearer"},
		"two keys":                      {headers: []string{"Bearer KEY KEY"}, code: "key_invalid", detail: "has no spaces"},
		"two keys with a comma":         {headers: []string{"Bearer KEY,KEY"}, code: "key_invalid", detail: "Unknown API key"},
		"letters outside ASCII":         {headers: []string{"Bearer pk_é"}, code: "key_invalid", detail: "only ASCII"},
		"two headers":                   {headers: []string{"Bearer KEY", "Bearer KEY"}, code: "key_invalid", detail: "more than one Authorization header"},
		"an invalid and a valid header": {headers: []string{"Bearer x", "Bearer KEY"}, code: "key_invalid", detail: "more than one Authorization header"},
		"the key in quotes":             {headers: []string{`Bearer "KEY"`}, code: "key_invalid", detail: "Unknown API key"},
		"the key without its last byte": {headers: []string{"Bearer KE~"}, code: "key_invalid", detail: "Unknown API key"},
		"the key in another case":       {headers: []string{"Bearer PK_KEY"}, code: "key_invalid", detail: "Unknown API key"},
	} {
		t.Run(name, func(t *testing.T) {
			s, secret := s, k.secrets["read"]
			s.t = t
			r := s.request(http.MethodGet, "/v1/locks", "")
			for _, h := range c.headers {
				h = strings.ReplaceAll(strings.ReplaceAll(h, "KEY", secret), "KE~", secret[:len(secret)-1])
				r.Header.Add("Authorization", h)
			}
			got := s.do(r)
			if c.code == "" {
				got.want(t, http.StatusOK, nil)
				return
			}
			got.want(t, http.StatusUnauthorized, map[string]any{"code": c.code})
			if detail := got.body["detail"].(string); !strings.Contains(detail, c.detail) || strings.Contains(got.text, secret[:20]) || strings.Contains(got.text, "cGFk") {
				t.Errorf("detail %q, want %q and nothing of the key", detail, c.detail)
			}
		})
	}
}

func TestInvalidKeysAreRateLimitedAndValidOnesAreNot(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	s := serve(t, server.Options{Locks: access.Guard(inMemory(), access.Limits{}), Keys: k.Keyring, Attempts: access.NewAttempts(3, 0)})
	ask := func(authorization string) answer {
		r := s.request(http.MethodGet, "/v1/locks", "")
		r.Header.Set("Authorization", authorization)
		return s.do(r)
	}
	for range 3 {
		ask("Bearer pk_nobody").want(t, http.StatusUnauthorized, nil)
	}
	ask("Bearer pk_nobody").want(t, http.StatusTooManyRequests, map[string]any{"code": "rate_limited"})
	ask("Bearer "+k.secrets["expired"]).want(t, http.StatusTooManyRequests, map[string]any{"code": "rate_limited"})
	ask("Bearer "+k.secrets["read"]).want(t, http.StatusOK, nil)
	s.get("/v1/locks").want(t, http.StatusUnauthorized, map[string]any{"code": "key_missing"})
	if lines := s.lines("invalid API key"); len(lines) != 3 || lines[0]["client"] != "127.0.0.1" {
		t.Errorf("logged %v", lines)
	}
	for _, line := range s.lines("request") {
		if status := line["status"]; (line["level"] == "INFO") != (status == 200.0) {
			t.Errorf("a request answered with %v is logged at %v; any client could flood the log", status, line["level"])
		}
	}
}

func TestAClientOfAUnixSocketHasNoAddressInTheLog(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"@", ""} { // as net/http has it, on Linux and elsewhere
		log := new(proctest.Transcript)
		s := server.New(server.Options{Locks: inMemory(), Keys: newKeyring(t).Keyring, Log: slog.New(slog.NewJSONHandler(log, nil))})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/locks", http.NoBody)
		r.RemoteAddr = address
		r.Header.Set("Authorization", "Bearer pk_nobody")
		s.ServeHTTP(httptest.NewRecorder(), r)
		if lines := (harness{t: t, log: log}).lines("invalid API key"); len(lines) != 1 || lines[0]["client"] != "unix" {
			t.Errorf("logged %v", lines)
		}
	}
}

func TestLogHasKeyIDsAndNoSecrets(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	s := serve(t, server.Options{Locks: access.Guard(inMemory(), access.Limits{}), Keys: k.Keyring, UI: http.RedirectHandler("/", http.StatusFound)})
	for _, path := range []string{"/v1/locks", "/v1/locks/a", "/v1/locks/" + k.secrets["read"], "/v1/locks?cursor=" + k.secrets["read"], "/ui/"} {
		s.do(k.authorize(s.request(http.MethodGet, path, ""), "right"))
		s.do(k.authorize(s.request(http.MethodGet, path, ""), "expired"))
	}
	form := s.request(http.MethodPost, "/ui/login", "key="+k.secrets["admin"])
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	s.do(form).want(t, http.StatusSeeOther, nil)
	lines := s.lines("request")
	if lines[0]["key"] != k.ids["right"] || lines[1]["key"] != nil || lines[10]["key"] != k.ids["admin"] {
		t.Errorf("logged %v", lines)
	}
	for name, secret := range k.secrets {
		if name != "read" && strings.Contains(s.log.String(), secret[len(secret)-20:]) {
			t.Errorf("the log has the key %s", name)
		}
	}
}

// TestUnusualPathsNeedAKey tries OPTIONS *, which net/http would answer itself, and paths that look like assets until
// they are decoded.
func TestUnusualPathsNeedAKey(t *testing.T) {
	t.Parallel()
	_, p, end := servePiped(t, server.Options{Keys: newKeyring(t).Keyring, Locks: inMemory(), UI: http.NotFoundHandler()})
	for _, line := range []string{
		"OPTIONS *", "GET /ui/assets/x%2f..%2f..%2flocks/a", "GET /ui/assets/..%2flocks/a", "GET /ui/assets/%2e%2e%2flocks/a", `GET /ui/assets/x\..\..\locks/a`,
	} {
		conn, err := p.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", line)
		said, err := io.ReadAll(conn)
		if err = errors.Join(err, conn.Close()); err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 401 ") {
			t.Errorf("%s: %q, %v; want 401", line, said, err)
		}
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
