package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/server"
)

// hostileNames returns some two hundred invalid names: dangerous text alone, and before, inside and after valid text.
func hostileNames() []string {
	parts := []string{
		"\x00", "\r\n", "\n", "\t", "\x1b[2J", "\x7f", " ", "\u00a0", "\u200b", "\ufeff", // invisible
		"\u202e", "\u2066", "\u200f", // changes the text direction
		"é", "e\u0301", "ß", "\u017f", "\u212a", "\uff41", "\u0430", "日本", "🔒", "\U000e0041", // looks like another character, or changes with its case
		"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc3", // invalid UTF-8
		"/", "\\", "//", "/../", "..\\", "%", "%2e", "%2f", "%00", "%25", "+", "?", "#", ";", "&", "=", "~", "|", "*", "$", "!", ",", "^", "`", // special in a URL or a shell
		"<b>", "\"><script>alert(1)</script>", "'", "\"", "{{.}}", "${x}", "$(id)", // special in HTML or a template
		"'; drop table paddock.records; --", "' or '1'='1", "\\'", "/**/", "$1", // special in SQL
		"(", ")", "[", "]", "{", "}",
	}
	names := []string{
		"", ".", "..", "...", "-", "-a", "_a", ":a", "@a", ".a", "..a", strings.Repeat("a", 201), strings.Repeat("a:", 101), strings.Repeat("é", 100),
	}
	for _, p := range parts {
		names = append(names, p, "a"+p+"b", "a"+p)
	}
	return names
}

// TestHostileNamesAreRefused tries them wherever a request has a name, and checks that nothing is done.
func TestHostileNamesAreRefused(t *testing.T) {
	t.Parallel()
	h := server.New(server.Options{Locks: &fake{}})
	names := hostileNames()
	if len(names) < 200 {
		t.Errorf("only %d names", len(names))
	}
	for _, name := range names {
		segment := url.PathEscape(name)
		quoted, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range [][3]string{
			{"GET", "/v1/locks/" + segment}, {"GET", "/v1/locks/" + segment + "/queue"}, {"POST", "/v1/locks/" + segment + "/acquire", take},
			{"POST", "/v1/locks/" + segment + "/revoke", revoke}, {"GET", "/v1/fenced/" + segment},
			{"GET", "/v1/sessions/" + segment + "?limit=1"}, {"POST", "/v1/sessions/" + segment + "/revoke", `{"reason": "r"}`},
			{"PUT", "/v1/fenced/" + segment, `{"lock": "a", "fencing_token": 1, "value": 1}`},
			{"PUT", "/v1/fenced/a", `{"fencing_token": 1, "value": 1, "lock": ` + string(quoted) + `}`},
			{"POST", "/v1/acquire", `{"holder": "h", "locks": [{"name": "a"}, {"name": ` + string(quoted) + `}]}`},
			{"POST", "/v1/acquire", `{"holder": "h", "locks": [{"name": "a", ` + string(quoted) + `: 1}]}`},
			{"POST", "/v1/renew", `{"lease_id": "` + leaseID + `", "names": ["a", ` + string(quoted) + `]}`},
			{"POST", "/v1/tokens/verify", `{"name": ` + string(quoted) + `, ` + verify},
			{"GET", "/v1/events?limit=1&lock=" + url.QueryEscape(name)}, {"GET", "/v1/locks?prefix=:" + url.QueryEscape(name)},
		} {
			r := httptest.NewRequest(c[0], "/", strings.NewReader(c[2]))
			u, err := url.ParseRequestURI(c[1])
			if err != nil {
				t.Fatal(err)
			}
			r.URL = u
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusBadRequest && w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s", c[0], c[1], w.Code, w.Body)
			}
		}
	}
}
