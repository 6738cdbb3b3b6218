package migrations

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/internal/schema"
)

//go:embed *.sql
var embedded embed.FS

// A release is the migration files that a binary knows, for one schema. They are written for the schema paddock.
type release struct {
	files fs.FS
	in    schema.Name
	log   *slog.Logger
}

var this = release{files: embedded}

// forSchema returns this release for the schema of that name; empty: paddock.
func forSchema(name string, log *slog.Logger) (release, error) {
	in, err := schema.Parse(name)
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return release{embedded, in, log}, err
}

// reportAfter is how long a migration waits before it logs what it waits for.
const reportAfter = time.Second

// Latest returns the version that Up migrates to.
func Latest() uint { return this.latest() }

func (r release) latest() uint {
	var latest uint
	for _, name := range r.names() {
		latest = max(latest, number(name))
	}
	return latest
}

// Hash returns a hash of the migration files, which identifies the schema that they create.
func Hash() string {
	sum := sha256.New()
	for _, name := range this.names() {
		text, err := embedded.ReadFile(name)
		if err != nil {
			panic(err) // the files are part of the binary
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// names returns the names of the files in order.
func (r release) names() []string {
	names, err := fs.Glob(r.files, "*.sql")
	if err != nil {
		panic(err) // the pattern is constant
	}
	return names
}

// number returns the number at the beginning of a file name. A test checks that each name has one.
func number(name string) uint {
	var n uint
	digits, _, _ := strings.Cut(name, "_")
	if _, err := fmt.Sscanf(digits, "%d", &n); err != nil {
		return 0
	}
	return n
}
