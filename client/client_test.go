package client_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/client"
)

func TestNewRefusesABaseURL(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"that is empty":          "",
		"without a scheme":       "locks.example.org",
		"with only a host:port":  "127.0.0.1:8080",
		"of another scheme":      "ftp://locks.example.org",
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
				t.Fatalf("New took the base URL %q", url)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
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
			c := open(t, client.Options{BaseURL: base, HTTP: &http.Client{Transport: way(
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
		t.Error("New changed the HTTP client that it was given")
	}
}
