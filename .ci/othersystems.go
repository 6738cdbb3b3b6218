//go:build ignore

// Othersystems type-checks the packages in the working directory for the other systems that Paddock is released for. It
// compiles nothing: type-checking from the sources takes a sixth of the CPU, and finds all that compiling does but what
// the assembler and the linker find, for which .ci/release builds every system nightly.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	log.SetFlags(0)
	for _, system := range []string{"darwin/arm64", "freebsd/amd64", "windows/amd64"} {
		fmt.Println(system)
		goos, goarch, _ := strings.Cut(system, "/")
		loaded, err := packages.Load(&packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
				packages.NeedDeps | packages.NeedTypes,
			Env: append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch),
		}, "./...")
		if err != nil {
			log.Fatal(err)
		}
		if len(loaded) == 0 || packages.PrintErrors(loaded) > 0 {
			log.Fatal("it is not valid for " + system)
		}
	}
}
