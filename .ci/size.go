//go:build ignore

// Size prints how many lines of Go and SQL the repository has, by place, and how the files of package lock depend on
// each other. Run it in the root of the clone.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/paddock-lock/paddock/internal/arch/filerefs"
)

// places are matched in this order; a file belongs to the first one that matches its path.
var places = []struct {
	name string
	path *regexp.Regexp
}{
	{"tests", regexp.MustCompile(`^(.*_test|(test|internal/testkit|internal/arch)/.*)\.go$`)},
	{"benchmarks", regexp.MustCompile(`^bench/.*\.go$`)},
	{"generated", regexp.MustCompile(`\.gen\.go$`)},
	{"migrations", regexp.MustCompile(`^migrations/.*\.up\.sql$`)},
	{"kernel", regexp.MustCompile(`^(lock|store/internal/(engine|row|epoch|trees|waiters|database))/[^/]+\.go$`)},
	{"SDK", regexp.MustCompile(`^client/.*\.go$`)},
	{"verify", regexp.MustCompile(`^verify/.*\.go$`)},
	{"serve", regexp.MustCompile(`^((access|api|migrations|server|store|web|` +
		`internal/(batch|metrics|pgconnect|pgversion|poolmode|tracing|wire))/.*|` +
		`cmd/paddock/(database|listen|log|metrics|serve|socket|threads|tracing)|[^/]+)\.go$`)},
	{"commands", regexp.MustCompile(`\.go$`)},
}

func main() {
	paths, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go", "*.sql").Output()
	check(err)
	files, lines := map[string]int{}, map[string]int{}
	for path := range strings.FieldsSeq(string(paths)) {
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // removed, and not committed
		}
		check(err)
		for _, p := range places {
			if p.path.MatchString(path) {
				files[p.name]++
				lines[p.name] += bytes.Count(text, []byte("\n"))
				break
			}
		}
	}
	fmt.Printf("%-12s %6s %8s\n", "", "files", "lines")
	for _, name := range []string{"kernel", "serve", "commands", "SDK", "verify", "benchmarks", "tests", "generated", "migrations"} {
		fmt.Printf("%-12s %6d %8d\n", name, files[name], lines[name])
	}
	references("lock")
}

// references prints to how many other files of the package a file refers, and how many pairs refer to each other.
func references(folder string) {
	refs, files, err := filerefs.Find(folder)
	check(err)
	refers := map[[2]string]bool{}
	for _, r := range refs {
		refers[[2]string{r.From, r.To}] = true
	}
	mutual := 0
	for pair := range refers {
		if pair[0] < pair[1] && refers[[2]string{pair[1], pair[0]}] {
			mutual++
		}
	}
	fmt.Printf("\nA file of package %s refers to %.1f others; %d pairs refer to each other.\n",
		folder, float64(len(refers))/float64(files), mutual)
}

func check(err error) {
	if err != nil {
		log.Fatal("size: ", err)
	}
}
