package arch_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/paddock-lock/paddock"

// A dependent is a package, what it imports, and all that it links, without tests.
type dependent struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

// house returns all packages of the module.
func house(t *testing.T) []dependent {
	t.Helper()
	if _, err := os.ReadFile(filepath.Join(root, "go.mod")); err != nil { // so that the go command notes it
		t.Fatal(err)
	}
	return list(t, module+"/...")
}

func list(t *testing.T, patterns ...string) []dependent {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Standard,Imports,Deps"}, patterns...)...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, complaint.String())
	}
	var all []dependent
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p dependent
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// isIn returns whether a package is that one, or in a folder under it.
func isIn(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// own returns paths in the module by their folders.
func own(folders ...string) []string {
	for i := range folders {
		folders[i] = module + "/" + folders[i]
	}
	return folders
}

func TestWhoMayNotKnowWhom(t *testing.T) {
	t.Parallel()
	const pgx, chi = "github.com/jackc/pgx", "github.com/go-chi/chi"
	packages := house(t)
	for folder, banned := range map[string][]string{
		"server":          append(own("store", "client", "web", "migrations", "internal/batch", "internal/pgserver"), pgx),
		"web":             append(own("store", "client", "server", "migrations", "internal/batch", "internal/pgserver"), pgx, chi),
		"store":           append(own("server", "client", "web", "internal/pgserver"), chi, "net/http"),
		"client":          append(own("server", "store", "web", "migrations", "internal/pgserver", "client/openapi"), chi, pgx),
		"internal/wire":   append(own("server", "store", "web", "migrations", "internal/batch", "client", "access"), "net/http", chi, pgx),
		"client/guard":    append(own("server", "store", "web", "migrations", "internal/batch", "internal/pgserver", "client"), chi, pgx, "net/http"),
		"client/pgfence":  append(own("server", "store", "web", "migrations", "internal/batch", "internal/pgserver", "client"), chi, "net/http"),
		"migrations":      own("store", "server", "client", "web", "lock"),
		"internal/batch":  append(own("lock", "store"), "net/http", pgx),
		"access":          append(own("store", "server", "client", "web", "migrations", "internal"), "net/http", pgx, chi),
		"test/sim":        append(own("store", "server", "web", "migrations", "access", "internal/batch", "internal/pgserver"), "net/http", pgx, chi),
		"verify":          append(own("store", "server", "client", "web", "migrations", "access"), pgx, chi),
		"verify/workload": append(own("store", "server", "client", "web", "migrations", "access"), pgx, chi),
		"cmd/paddock": append(own("internal/testkit/pgtest", "internal/testkit/locktest", "internal/testkit/memlock", "internal/testkit/tcpproxy", "internal/testkit/pgbouncer", "internal/arch"),
			"testing", "github.com/testcontainers", "github.com/stretchr/testify", "github.com/chromedp"),
	} {
		t.Run(folder+" keeps to itself", func(t *testing.T) {
			t.Parallel()
			found := false
			for _, p := range packages {
				if !isIn(p.ImportPath, module+"/"+folder) || folder == "client" && isIn(p.ImportPath, module+"/client/pgfence") {
					continue // pgfence has a rule of its own
				}
				found = true
				for _, dep := range p.Deps {
					if slices.ContainsFunc(banned, func(b string) bool { return isIn(dep, b) }) {
						t.Errorf("%s depends on %s", p.ImportPath, dep)
					}
				}
			}
			if !found {
				t.Errorf("there is no package %s", folder)
			}
		})
	}
}

func TestTheDomainKnowsTheStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	domain := list(t, module+"/lock")[0]
	for _, dep := range list(t, domain.Deps...) {
		if !dep.Standard {
			t.Errorf("lock depends on %s", dep.ImportPath)
		}
	}
	for _, banned := range []string{"io", "os", "net", "net/http", "database/sql", "log", "log/slog", "math/rand/v2"} {
		if slices.Contains(domain.Imports, banned) {
			t.Errorf("lock imports %s: it does no input or output, and is given what is random", banned)
		}
	}
}

func TestOnlyTheCommandWires(t *testing.T) {
	t.Parallel()
	for _, p := range house(t) {
		if isIn(p.ImportPath, module+"/cmd/paddock") {
			continue
		}
		var known []string
		for _, part := range own("store", "server", "client", "web") {
			if p.ImportPath == part || slices.Contains(p.Deps, part) {
				known = append(known, part)
			}
		}
		if len(known) > 1 {
			t.Errorf("%s knows %v; only cmd/paddock may know more than one of them", p.ImportPath, known)
		}
	}
}

func TestTestingIsNotLinkedIntoTheHouse(t *testing.T) {
	t.Parallel()
	tests := own("internal/testkit/pgtest", "internal/testkit/locktest", "internal/testkit/tcpproxy", "internal/testkit/pgcluster", "internal/testkit/pgbouncer", "test/sim")
	for _, p := range house(t) {
		if slices.ContainsFunc(tests, func(folder string) bool { return isIn(p.ImportPath, folder) }) {
			continue
		}
		for _, dep := range p.Deps {
			if dep == "testing" || slices.Contains(tests, dep) {
				t.Errorf("%s depends on %s", p.ImportPath, dep)
			}
		}
	}
}
