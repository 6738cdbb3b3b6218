package arch_test

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheRulesAreReadInOrder: a file of package lock refers to files of its own line, and of the lines before it, in the
// reading order of its doc.go. Files that are not named there come after all of these.
func TestTheRulesAreReadInOrder(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "lock")
	text, err := os.ReadFile(filepath.Join(folder, "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, order, _ := strings.Cut(string(text), "# Reading order")
	lines := strings.Split(order, "//   - ")
	line := map[string]int{}
	for i, names := range lines {
		for _, name := range regexp.MustCompile(`\w+\.go`).FindAllString(names, -1) {
			line[name] = i
		}
	}
	if len(line) < 10 {
		t.Fatalf("found %d files in the reading order", len(line))
	}
	set := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	build.Default.GOROOT = strings.TrimSpace(string(root)) // a test that was built with -trimpath does not know it
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	p, err := (&types.Config{Importer: importer.ForCompiler(set, "source", nil)}).Check("lock", set, files, &info)
	if err != nil {
		t.Fatal(err)
	}
	fileOf := func(at token.Pos) (name string, place int) {
		name = filepath.Base(set.Position(at).Filename)
		if i, known := line[name]; known {
			return name, i
		}
		return name, len(lines)
	}
	wrong := map[string]bool{}
	for id, object := range info.Uses {
		if object.Pkg() != p {
			continue
		}
		from, place := fileOf(id.Pos())
		if to, before := fileOf(object.Pos()); before > place && !wrong[from+to] {
			wrong[from+to] = true
			t.Errorf("%s refers to %s (%s), which is read after it", from, to, object.Name())
		}
	}
}
