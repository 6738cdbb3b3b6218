package browser_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// The version of axe-core that checks the pages, as npm has it.
const (
	axeVersion   = "4.14.1"
	axeIntegrity = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axe returns the script of axe-core, which npm fetches.
func axe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	pack := exec.CommandContext(t.Context(), "npm", "pack", "--prefer-offline", "--silent", "--pack-destination", dir, "axe-core@"+axeVersion)
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("cannot fetch axe-core: %v: %s", err, out)
	}
	packed, err := os.ReadFile(filepath.Join(dir, "axe-core-"+axeVersion+".tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha512.Sum512(packed); base64.StdEncoding.EncodeToString(sum[:]) != axeIntegrity {
		t.Fatalf("axe-core %s is not the one that was checked in", axeVersion)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(unpacked); ; {
		file, err := files.Next()
		if err != nil {
			t.Fatal(err)
		}
		if file.Name == "package/axe.min.js" {
			script, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			return string(script)
		}
	}
}

// wantAccessible runs axe on the page, with the rules of WCAG 2.2 AA, on two widths in both color schemes.
func (b *tab) wantAccessible(script, path string) {
	b.Helper()
	for _, width := range []int64{1280, 390} {
		b.visit(path, width, 800)
		b.wait("document.querySelector('main') !== null")
		b.do(b.ctx, chromedp.Evaluate[chromedp.Void]("(() => {"+script+"})()"))
		for _, scheme := range []string{"light", "dark"} {
			media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
				b.Fatal(err)
			}
			b.wait("matchMedia('(prefers-color-scheme: " + scheme + ")').matches")
			b.do(b.ctx, chromedp.Evaluate[chromedp.Void](`window.found = null;
			axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']}).then((r) => {
				window.found = r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.target + ' ' + (n.any[0]?.message ?? '')).slice(0, 3).join('; ')).join('\n') || 'nothing';
			})`))
			b.wait("typeof window.found === 'string'")
			if found := value[string](b, "window.found"); found != "nothing" {
				b.Errorf("%s, %s, %d pixels: %s", path, scheme, width, found)
			}
		}
	}
}

// wantNoShadows fails if a form has a control whose name hides a method of the form.
func (b *tab) wantNoShadows(path string) {
	b.Helper()
	if got := value[string](b, `[...document.forms].flatMap((f) => [...f.elements].map((e) => e.name || e.id)).filter(
		(n) => typeof document.createElement('form')[n] === 'function').join(' ')`); got != "" {
		b.Errorf("%s: the names %s hide methods of their form", path, got)
	}
}

// TestPagesAreAccessible checks every page with axe.
func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	inTabs(t, map[string]func(*testing.T, context.Context){"axe finds nothing": axeFindsNothing})
}

func axeFindsNothing(t *testing.T, browser context.Context) {
	locks := memlock.New().Replica(1)
	if _, err := locks.DeclareTree(t.Context(), "repo"); err != nil {
		t.Fatal(err)
	}
	id := lock.SessionID{7}
	if _, err := locks.OpenSession(t.Context(), lock.OpenSession{ID: id, Holder: "importer", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]lock.Acquire{
		"repo:src": {Locks: lock.One("repo:src"), TTL: time.Hour, Metadata: []byte(`{"job":1}`)},
		"imports":  {Locks: lock.One("imports"), SessionID: id},
		"ended":    {Locks: lock.One("ended"), TTL: 100 * time.Millisecond, Grace: time.Minute},
		"stays":    {Locks: lock.One("stays"), TTL: 100 * time.Millisecond, Stays: true},
		"gpus":     {Locks: []lock.Member{{Name: "gpus", Mode: lock.Permit, Capacity: 4}}, TTL: time.Hour},
	} {
		a.Holder = "holder of " + name
		if _, err := locks.Acquire(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	freeze(t, locks, lock.FreezeRequest{Scope: "billing:", Reason: "migration", For: time.Hour})
	closeLock(t, locks, "worker", "nightly", time.Hour)
	waiting, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	defer calls.Wait()
	defer stop()
	for _, name := range []string{"repo:src:a", "imports", "gpus"} {
		calls.Go(func() {
			_, _ = locks.Acquire(waiting, lock.Acquire{Locks: lock.One(name), Holder: "waiter", TTL: time.Hour, Wait: lock.MaxWait}) // until stop
		})
	}
	gpus, err := locks.Lock(t.Context(), "gpus")
	if err != nil {
		t.Fatal(err)
	}
	script := axe(t)
	for _, path := range []string{
		"/ui/", "/ui/?q=none", "/ui/locks/imports", "/ui/locks/repo:src:a", "/ui/locks/ended", "/ui/locks/nightly", "/ui/events", "/ui/events?kind=deadlock", "/ui/holder?holder=importer", "/ui/holder?holder=waiter", "/ui/sessions", "/ui/sessions/" + id.Ref().String(),
		"/ui/trees", "/ui/trees/repo", "/ui/freezes", "/ui/freezes/billing:", "/ui/rules", "/ui/service", "/ui/login", fmt.Sprintf("/ui/revoke?name=gpus&token=%d", gpus.Token),
	} {
		b := showSessions(t, browser, locks)
		b.wantAccessible(script, path)
		b.wantNoShadows(path)
	}
}
