package web_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/testmain"
	"github.com/paddock-lock/paddock/internal/testkit/webtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/web"
)

func TestMain(m *testing.M) { os.Exit(testmain.M{M: m}.Run()) }

// ask sends the request and returns the answer and its body.
func ask(t *testing.T, h http.Handler, r *http.Request) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

func get(t *testing.T, fx *webtest.Service, target string) (*http.Response, string) {
	t.Helper()
	return ask(t, web.New(web.Options{Locks: fx}), httptest.NewRequest(http.MethodGet, target, nil))
}

func post(t *testing.T, fx *webtest.Service, form url.Values) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/ui/revoke", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return ask(t, web.New(web.Options{Locks: fx}), r)
}

func wantStatus(t *testing.T, r *http.Response, want int) {
	t.Helper()
	if r.StatusCode != want {
		t.Errorf("status %d, want %d", r.StatusCode, want)
	}
}

// wantText fails unless the body contains all texts.
func wantText(t *testing.T, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q:\n%s", text, body)
		}
	}
}

func TestEveryAnswerHasSecurityHeaders(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/ui/", "/ui/?state=none", "/ui/revoke?name=hostile&token=6", "/ui/revoke", "/ui/nothing", "/ui/locks/hostile", "/ui/locks/_", "/ui/assets/x/paddock.js", "/ui/assets/x/none"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			r, body := get(t, webtest.NewBusyService(), target)
			wantSecured(t, r, body)
			if !strings.HasPrefix(target, "/ui/assets/x/p") && r.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("Cache-Control: %q", r.Header.Get("Cache-Control"))
			}
		})
	}
}

// wantSecured fails unless the answer has the security headers, and no inline script or style.
func wantSecured(t *testing.T, r *http.Response, body string) {
	t.Helper()
	for key, want := range map[string]string{
		"X-Content-Type-Options": "nosniff",
		"Referrer-Policy":        "same-origin",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
	} {
		if got := r.Header.Get(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	if inline.MatchString(body) {
		t.Errorf("inline script or style:\n%s", inline.FindString(body))
	}
}

// inline matches inline scripts and styles. In a page's text, < is escaped.
var inline = regexp.MustCompile(`<script[^>]*>[^<]|<style|<[^>"]*("[^"]*"[^>"]*)* (style|on[a-z]+)=`)

func TestAssetsAreCachedByContent(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	_, page := get(t, fx, "/ui/")
	types := map[string]string{"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
	for ext, want := range types {
		address := regexp.MustCompile(`/ui/assets/[0-9a-f]{16}/paddock\.` + ext).FindString(page)
		r, _ := get(t, fx, address)
		wantStatus(t, r, http.StatusOK)
		if r.Header.Get("Content-Type") != want || !strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v", address, r.Header)
		}
		again := httptest.NewRequest(http.MethodGet, "/ui/assets/another/paddock."+ext, nil)
		again.Header.Set("If-None-Match", r.Header.Get("ETag"))
		r, _ = ask(t, web.New(web.Options{Locks: fx}), again)
		wantStatus(t, r, http.StatusNotModified)
		if r.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("a URL with another version is cached: %v", r.Header)
		}
	}
}

func TestScriptsImportOnlyAssets(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	imports := regexp.MustCompile(`(?m)^import .*'(.*)';$`)
	seen, queue := map[string]bool{}, []string{"paddock.js"}
	for ; len(queue) > 0; queue = queue[1:] {
		r, body := get(t, fx, "/ui/assets/x/"+queue[0])
		wantStatus(t, r, http.StatusOK)
		for _, m := range imports.FindAllStringSubmatch(body, -1) {
			file, beside := strings.CutPrefix(m[1], "./")
			if !beside {
				t.Errorf("%s imports %s", queue[0], m[1])
			}
			if !seen[file] {
				seen[file], queue = true, append(queue, file)
			}
		}
	}
	if len(seen) < 5 {
		t.Errorf("only %v imported", seen)
	}
}

func TestUnknownPagesAndMethodsAreRefused(t *testing.T) {
	t.Parallel()
	r, body := get(t, webtest.NewService(), "/ui/nothing/here")
	wantStatus(t, r, http.StatusNotFound)
	wantText(t, body, "There is no such page.", `href="/ui/"`)
	r, _ = ask(t, web.New(web.Options{Locks: webtest.NewService()}), httptest.NewRequest(http.MethodDelete, "/ui/revoke", nil))
	wantStatus(t, r, http.StatusMethodNotAllowed)
}

func TestProblemsAreShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  error
		status int
		words  string
	}{
		"an error with a detail shows it":              {&lock.Error{Code: lock.ErrUnavailable, Detail: "Not now."}, 503, "Not now."},
		"a bare code gets a message":                   {lock.ErrUnavailable, 503, "Try again in a moment."},
		"an unknown outcome is not the reader's fault": {lock.ErrUnknownOutcome, 503, "Try again in a moment."},
		"an error of another type is not shown":        {errors.New("secret of the machine"), 500, "The service has failed"},
		"an unexpected code is an internal error":      {lock.ErrLeaseLost, 500, "The service has failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := webtest.NewService()
			fx.BreakDown(c.fault)
			r, body := get(t, fx, "/ui/?prefix=kept")
			wantStatus(t, r, c.status)
			wantText(t, body, c.words, `value="kept"`, `role="alert"`)
			if strings.Contains(body, "secret of the machine") {
				t.Error("the page shows the cause")
			}
		})
	}
}

func TestInternalErrorsAreLoggedWithTheirCause(t *testing.T) {
	t.Parallel()
	fx := webtest.NewService()
	fx.BreakDown(&lock.Error{Code: lock.ErrInternal, Detail: "Sorry.", Cause: errors.New("disk on fire")})
	var log bytes.Buffer
	h := web.New(web.Options{Locks: fx, Log: slog.New(slog.NewTextHandler(&log, nil))})
	_, body := ask(t, h, httptest.NewRequest(http.MethodGet, "/ui/", nil))
	wantText(t, log.String(), "level=ERROR", "disk on fire")
	if strings.Contains(body, "disk on fire") {
		t.Error("the page shows the cause")
	}
}
