package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The maximum lengths in lines. Most files and functions should be far below.
const (
	maxFileLines     = 400
	maxFunctionLines = 60
)

// root is the folder of the module. The go command reruns the tests when a file that they read has changed.
const root = "../.."

// eachGoFile calls visit with each Go file that is not generated, tests included.
func eachGoFile(t *testing.T, visit func(path string, set *token.FileSet, f *ast.File)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(
			set,
			filepath.Join(root, path),
			nil,
			parser.ParseComments|parser.SkipObjectResolution,
		)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(f) {
			visit(path, set, f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	t.Parallel()
	files := 0
	eachGoFile(t, func(path string, set *token.FileSet, f *ast.File) {
		files++
		if lines := set.File(f.Pos()).LineCount(); lines > maxFileLines {
			t.Errorf("%s has %d lines, want at most %d", path, lines, maxFileLines)
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from, to := set.Position(fn.Pos()).Line, set.Position(fn.End()).Line
			if lines := to - from + 1; lines > maxFunctionLines {
				t.Errorf("%s:%d: %s has %d lines, want at most %d", path, from, fn.Name, lines, maxFunctionLines)
			}
		}
	})
	if files == 0 {
		t.Error("found no Go file")
	}
}

func TestEveryPackageHasAComment(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	eachGoFile(t, func(path string, _ *token.FileSet, f *ast.File) {
		folder := filepath.Dir(path)
		documented[folder] = documented[folder] || f.Doc != nil || strings.HasSuffix(f.Name.Name, "_test")
	})
	for folder, ok := range documented {
		if !ok {
			t.Errorf("the package in %s has no comment", folder)
		}
	}
}

func TestNoInitFunctions(t *testing.T) {
	t.Parallel()
	eachGoFile(t, func(path string, set *token.FileSet, f *ast.File) {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: init functions are not allowed", set.Position(fn.Pos()))
			}
		}
	})
}
