package client_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

func TestNewRefusesABaseURL(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"that is empty":          "",
		"without a scheme":       "locks.example.org",
		"with only a host:port":  "127.0.0.1:8080",
		"of another scheme":      "ftp://locks.example.org",
		"of a relative socket":   "unix:paddock.sock",
		"without a host":         "http://",
		"with only a port":       "http://:8080",
		"with a query":           "http://locks.example.org?a=b",
		"with an empty query":    "http://locks.example.org?",
		"with a fragment":        "http://locks.example.org#v1",
		"with a password":        "http://me:hunter2@locks.example.org",
		"that cannot be parsed":  "http://locks.example.org/%zz",
		"with a control in it":   "http://locks.example.org/\n",
		"with a port of letters": "http://locks.example.org:http",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client.New(client.Options{BaseURL: url})
			if err == nil {
				t.Fatalf("New accepted the base URL %q", url)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestAnErrorSaysWhichOfSeveralAddressesIsWrong(t *testing.T) {
	t.Parallel()
	for urls, want := range map[string]string{
		"http://a, ftp://b":          "client: base URL 2 of 2 must begin with http:// or https://",
		"http://a,":                  "client: base URL 2 of 2 must begin with http:// or https://",
		"http://a,http://b,http://a": "client: base URLs 1 and 3 are the same; give each replica's address once",
	} {
		if _, err := client.New(client.Options{BaseURL: urls}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %s", urls, err, want)
		}
	}
}

func TestRequestsGoUnderTheBaseURL(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"http://paddock.test":           "http://paddock.test/v1/locks/jobs:nightly",
		"https://paddock.test/":         "https://paddock.test/v1/locks/jobs:nightly",
		"http://paddock.test:81/locks":  "http://paddock.test:81/locks/v1/locks/jobs:nightly",
		"http://paddock.test:81/locks/": "http://paddock.test:81/locks/v1/locks/jobs:nightly",
		"http://[::1]:8080":             "http://[::1]:8080/v1/locks/jobs:nightly",
	} {
		t.Run(base, func(t *testing.T) {
			t.Parallel()
			var got string
			c := open(t, client.Options{BaseURL: base, HTTP: &http.Client{Transport: roundTripFunc(
				func(r *http.Request) (*http.Response, error) {
					got = r.URL.Scheme + "://" + r.URL.Host + r.URL.Path
					return reply(r, http.StatusOK, "application/json", freeJSON), nil
				})}})
			if err := read(c, t); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("asked %s, want %s", got, want)
			}
		})
	}
}

func TestTheCallersHTTPClientIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	h := &http.Client{Transport: saying(http.StatusOK, "application/json", freeJSON)}
	open(t, client.Options{BaseURL: "http://paddock.test", HTTP: h})
	if h.CheckRedirect != nil {
		t.Error("New changed the caller's HTTP client")
	}
}

const key = "pk_k3f9a2xyqw_dGhpcyBpcyBubyBzZWNyZXQgYnV0IGl0IGxvb2tzIGl0"

func TestTheKeyIsSentWithEachRequest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "", key: "Bearer " + key} {
		var got request
		c := open(t, client.Options{BaseURL: "http://paddock.test", Key: name, HTTP: &http.Client{Transport: heard(&got, http.StatusOK, freeJSON)}})
		if err := read(c, t); err != nil || got.header.Get("Authorization") != want || strings.Contains(got.uri, "pk_") {
			t.Errorf("with %q: %v, Authorization: %q, %s", name, err, got.header.Get("Authorization"), got.uri)
		}
	}
}

func TestNewRefusesAKeyThatNoHeaderCanCarry(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]string{
		"with a line break at the end": key + "\n", "with another header": key + "\r\nX: y", "with a space": "Bearer " + key, "with a letter beyond ASCII": key + "é",
	} {
		_, err := client.New(client.Options{BaseURL: "http://paddock.test", Key: bad})
		if err == nil || strings.Contains(err.Error(), key[:8]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheKeyIsNeverPrinted(t *testing.T) {
	t.Parallel()
	o := client.Options{BaseURL: "http://127.0.0.1:1", Key: key}
	c := open(t, o)
	_, err := acquire(c, t)
	for _, text := range []string{
		fmt.Sprint(o), fmt.Sprintf("%+v", o), fmt.Sprintf("%#v", o), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%#v", err), fmt.Sprint(errors.Unwrap(err), err),
	} {
		if strings.Contains(text, key[:8]) {
			t.Errorf("the key is printed: %s", text)
		}
	}
}

func TestTLSOptionsAreUsed(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Paddock-Api", "v1")
		_, _ = w.Write([]byte(freeJSON))
	}))
	defer s.Close()
	trusting := s.Client().Transport.(*http.Transport).TLSClientConfig
	if err := read(open(t, client.Options{BaseURL: s.URL, TLS: trusting}), t); err != nil {
		t.Error(err)
	}
	if err := read(open(t, client.Options{BaseURL: s.URL}), t); !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("a server with an untrusted certificate: %v", err)
	}
	if _, err := client.New(client.Options{BaseURL: s.URL, TLS: &tls.Config{}, HTTP: s.Client()}); err == nil {
		t.Error("New accepted TLS together with a Transport")
	}
}
