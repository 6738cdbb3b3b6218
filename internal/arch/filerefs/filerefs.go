// Package filerefs finds which files of a package refer to each other.
package filerefs

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Reference is a use, in one file, of what another file of the package declares.
type Reference struct {
	From, To string // base names of the files
	Name     string // what is used
}

// Find returns the references between the files of the package in the folder, in no order, and how many files the
// package has. Tests are left out. It needs the go command, and the sources of all that the package imports.
func Find(folder string) (refs []Reference, files int, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, 0, err
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, 0, err
		}
		parsed = append(parsed, f)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, 0, err
	}
	build.Default.GOROOT = strings.TrimSpace(string(root)) // a program that was built with -trimpath does not know it
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	p, err := (&types.Config{Importer: importer.ForCompiler(set, "source", nil)}).Check(folder, set, parsed, &info)
	if err != nil {
		return nil, 0, err
	}
	file := func(at token.Pos) string { return filepath.Base(set.Position(at).Filename) }
	for id, object := range info.Uses {
		if object.Pkg() != p {
			continue
		}
		if from, to := file(id.Pos()), file(object.Pos()); from != to {
			refs = append(refs, Reference{from, to, object.Name()})
		}
	}
	return refs, len(parsed), nil
}
