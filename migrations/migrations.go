package migrations

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.sql
var files embed.FS

// Latest is the version that Up brings a database to.
func Latest() uint {
	var latest uint
	for _, name := range names() {
		latest = max(latest, number(name))
	}
	return latest
}

// Hash is the same for two builds exactly if their migration files are: a
// name for a database made by them.
func Hash() string {
	sum := sha256.New()
	for _, name := range names() {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the files are part of the binary
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// names are the files, in order.
func names() []string {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		panic(err) // the pattern is constant
	}
	return names
}

// number is the number that a file's name begins with, 0 for one that breaks
// the rule, which a test forbids.
func number(name string) uint {
	var n uint
	digits, _, _ := strings.Cut(name, "_")
	if _, err := fmt.Sscanf(digits, "%d", &n); err != nil {
		return 0
	}
	return n
}
