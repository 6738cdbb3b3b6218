//go:build unix

// Package tools finds the programs that whole-system tests run, and fetches missing ones.
//
// A program that is not installed comes from the user's cache folder, or is fetched into it from the packages of
// Debian or Ubuntu, without root and announced in one line; see packages usercache and debs. Those of the chart are
// compiled from Go modules, in the version that is named here, whatever is installed. PADDOCK_FETCH=never forbids both.
package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/debs"
	"github.com/paddock-lock/paddock/internal/pgserver"
	"github.com/paddock-lock/paddock/internal/usercache"
)

// A tool is a program and where it comes from.
type tool struct {
	installed []string // names in the PATH, or paths
	pkg       string   // of Debian, with the program
	beside    []string // packages with its data, which are fetched even if they count as installed
	program   string   // its path in the packages
	sibling   string   // the path of another tool in the same package
	config    string   // a file of the packages
	variables []string // needed if that file is not installed but unpacked, see debs.Tree.Expose
	module    string   // the package and version of a program in Go, which is compiled instead; then only program is set
}

// The configuration of unpacked fonts, which names them by a path relative to the file.
const (
	fontsFile = "etc/fonts/unpacked.conf"
	fonts     = `<fontconfig>
<dir prefix="relative">../../usr/share/fonts</dir>
<cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`
)

// find returns the tool with the name.
func find(name string) (t tool, ok bool) {
	t, ok = map[string]tool{
		// The headless shell is Chromium without windows of its own; tests take half as much CPU time. Debian's script for
		// it in the PATH would leave the browser running when it is killed.
		"chromium": {
			installed: []string{"/usr/lib/chromium/chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"},
			pkg:       "chromium-headless-shell",
			beside:    []string{"chromium-common"},
			program:   "usr/lib/chromium/chromium-headless-shell",
			config:    "etc/fonts/fonts.conf",
			variables: []string{"FONTCONFIG_FILE=$tree/" + fontsFile},
		},
		"caddy":   {installed: []string{"caddy"}, pkg: "caddy", program: "usr/bin/caddy"},
		"curl":    {installed: []string{"curl"}, pkg: "curl", program: "usr/bin/curl"},
		"haproxy": {installed: []string{"haproxy", "/usr/sbin/haproxy"}, pkg: "haproxy", program: "usr/sbin/haproxy"},
		"fish":    {installed: []string{"fish"}, pkg: "fish", beside: []string{"fish-common"}, program: "usr/bin/fish"},
		"mandoc":  {installed: []string{"mandoc"}, pkg: "mandoc", program: "usr/bin/mandoc"},
		"nginx":   {installed: []string{"nginx", "/usr/sbin/nginx"}, pkg: "nginx", program: "usr/sbin/nginx"},
		"openssl": {
			installed: []string{"openssl"},
			pkg:       "openssl",
			program:   "usr/bin/openssl",
			config:    "etc/ssl/openssl.cnf",
			variables: []string{"OPENSSL_CONF=$tree/etc/ssl/openssl.cnf"},
		},
		"prometheus": {installed: []string{"prometheus"}, pkg: "prometheus", program: "usr/bin/prometheus", sibling: "usr/bin/promtool"},
		"promtool":   {installed: []string{"promtool"}, pkg: "prometheus", program: "usr/bin/promtool", sibling: "usr/bin/prometheus"},
		"zsh":        {installed: []string{"zsh"}, pkg: "zsh", beside: []string{"zsh-common"}, program: "bin/zsh"},
		"pgbouncer":  {installed: []string{"pgbouncer", "/usr/sbin/pgbouncer"}, pkg: "pgbouncer", program: "usr/sbin/pgbouncer"},

		"helm":        {module: "helm.sh/helm/v3/cmd/helm@v3.22.0", program: "bin/helm"},
		"helm-docs":   {module: "github.com/norwoodj/helm-docs/cmd/helm-docs@v1.14.2", program: "bin/helm-docs"},
		"kubeconform": {module: "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0", program: "bin/kubeconform"},
	}[name]
	return t, ok
}

// Path returns the path of the program with the name: psql, or one of those in find. Without it the test fails with an error
// that says how to install it.
func Path(t testing.TB, name string) string {
	t.Helper()
	path, err := Find(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// SearchPath returns a value of the variable PATH with which shells find the programs.
func SearchPath(t testing.TB, names ...string) string {
	t.Helper()
	var dirs []string
	for _, name := range names {
		dirs = append(dirs, filepath.Dir(Path(t, name)))
	}
	return strings.Join(append(dirs, os.Getenv("PATH")), string(filepath.ListSeparator))
}

// Find is Path for callers that are not tests.
func Find(ctx context.Context, name string) (path string, err error) {
	if name == "psql" {
		return findPSQL(ctx)
	}
	wanted, ok := find(name)
	if !ok {
		return "", fmt.Errorf("no test needs %s: add it to package tools", name)
	}
	for _, name := range wanted.installed {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	path, err = wanted.fetch(ctx, usercache.Default())
	if err != nil {
		if wanted.module != "" {
			return "", fmt.Errorf("%s was not compiled: %w. See whether this works: go install %s", name, err, wanted.module)
		}
		return "", fmt.Errorf("%s is not installed and was not fetched: %w. Install it with: apt-get install %s",
			name, err, wanted.pkg)
	}
	return path, nil
}

// findPSQL returns psql, which comes with PostgreSQL's other programs.
func findPSQL(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("psql"); err == nil {
		return path, nil
	}
	dir, err := pgserver.Find(ctx, "psql")
	return filepath.Join(dir, "psql"), err
}

// fetch returns the tool's path in the cache, and adds it if necessary.
func (w tool) fetch(ctx context.Context, cache usercache.Folder) (path string, err error) {
	source, fill := w.pkg, w.unpack
	if w.module != "" {
		source, fill = filepath.Base(w.module), w.compile // the name with the version
	}
	entry := "tool-" + source
	path = filepath.Join(cache.Path, entry, "bin", filepath.Base(w.program))
	if len(cache.Entries(entry)) > 0 {
		return path, nil
	}
	if os.Getenv("PADDOCK_FETCH") == "never" {
		return "", errors.New("PADDOCK_FETCH=never forbids it")
	}
	if w.module == "" {
		if err := debs.Check(); err != nil {
			return "", err
		}
	}
	writer, err := cache.Lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, writer.Close()) }()
	if len(cache.Entries(entry)) > 0 { // another process was faster
		return path, nil
	}
	fmt.Fprintf(os.Stderr, "%s is not installed; fetching it once into %s; PADDOCK_FETCH=never forbids it\n", source, cache.Path)
	_, err = writer.Add(entry, func(dir string) error { return fill(ctx, cache, dir) })
	return path, err
}

// compile compiles the tool into the folder bin of dir.
func (w tool) compile(ctx context.Context, _ usercache.Folder, dir string) error {
	install := exec.CommandContext(ctx, "go", "install", w.module)
	install.Env = append(os.Environ(), "GOBIN="+filepath.Join(dir, "bin"), "GOOS=", "GOARCH=")
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// unpack unpacks the packages with the tool into dir.
func (w tool) unpack(ctx context.Context, cache usercache.Folder, dir string) error {
	tree := debs.Tree{Dir: dir, Work: filepath.Join(cache.Path, "apt")}
	if err := tree.Update(ctx); err != nil {
		return err
	}
	if err := tree.Unpack(ctx, append([]string{w.pkg}, w.beside...)...); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, w.program)); err != nil {
		return fmt.Errorf("the package %s of this system has no program: %w", w.pkg, err)
	}
	if w.sibling != "" {
		if err := tree.Expose(w.sibling); err != nil {
			return err
		}
	}
	return w.expose(tree)
}

// expose makes the unpacked program run, with the configuration that was unpacked beside it.
func (w tool) expose(tree debs.Tree) error {
	if _, err := os.Stat(filepath.Join(tree.Dir, w.config)); errors.Is(err, fs.ErrNotExist) {
		return tree.Expose(w.program) // the system has it
	}
	if filepath.Dir(w.config) == filepath.Dir(fontsFile) {
		if err := os.WriteFile(filepath.Join(tree.Dir, fontsFile), []byte(fonts), 0o644); err != nil {
			return err
		}
	}
	return tree.Expose(w.program, w.variables...)
}
