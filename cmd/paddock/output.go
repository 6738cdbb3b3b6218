package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/internal/wire"
)

// A lookup finds an environment variable, as os.LookupEnv does.
type lookup func(name string) (value string, ok bool)

// A program is what a command has besides its flags: arguments, environment, outputs, log.
type program struct {
	args    []string // all of the command line
	sources *sources
	command *kong.Context
	env     lookup
	stdout  io.Writer // for data
	stderr  *console  // for messages that are not log records
	log     *slog.Logger
}

// The formats in which data is printed.
const (
	asTable = "table"
	asWide  = "wide"
	asJSON  = "json"
	asYAML  = "yaml"
	asName  = "name"
	asEnv   = "env"
)

// The outputFlags choose the format of what is printed.
type outputFlags struct {
	Output string `short:"o" enum:"table,wide,json,yaml,name" default:"table" placeholder:"FORMAT" help:"Output format: table; wide, a table that is not cut to the width of the terminal; json; yaml; or name, names only, one a line."`
}

// The envOutputFlags are the outputFlags of commands that can also print shell variables.
type envOutputFlags struct {
	Output string `short:"o" enum:"table,wide,json,yaml,name,env" default:"table" placeholder:"FORMAT" help:"Output format: table; wide, a table that is not cut to the width of the terminal; json; yaml; name, names only, one a line; or env, lines for a POSIX shell to eval."`
}

// A variable is a shell variable. Without a value it is to be unset.
type variable struct {
	name, value string
}

// An output is what a command prints, in each format that it has.
type output struct {
	table func(*table)
	wire  any
	names []string
	env   []variable
	empty string // what to say in place of the table of a list without items; empty: this is no list
}

// print writes the output to standard output, in one write. That a list has no items goes to standard error.
func (p *program) print(format string, o output) error {
	if isTable(format) && o.empty != "" && len(o.names) == 0 {
		_, err := fmt.Fprintln(p.stderr, printable.Text(o.empty))
		return err
	}
	var b bytes.Buffer
	if err := o.write(&b, format, p.style(format)); err != nil {
		return err
	}
	_, err := p.stdout.Write(b.Bytes())
	return err
}

func isTable(format string) bool { return format == asTable || format == asWide }

func (o output) write(w io.Writer, format string, s style) error {
	switch format {
	case asJSON:
		return writeJSON(w, o.wire, "  ")
	case asYAML:
		return writeYAML(w, o.wire)
	case asName:
		return writeNames(w, o.names)
	case asEnv:
		_, err := io.WriteString(w, exports(o.env))
		return err
	}
	var t table
	o.table(&t)
	return t.write(w, s)
}

// writeNames writes names, one a line.
func writeNames(w io.Writer, names []string) error {
	for _, name := range names {
		if _, err := io.WriteString(w, printable.Text(name)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// namesIn returns the names of items.
func namesIn[T any](items []T, name func(T) string) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = name(item)
	}
	return names
}

// writeJSON writes v and a newline. Without an indent it is one line.
func writeJSON(w io.Writer, v any, indent string) error {
	text, err := wire.Encode(v)
	if err != nil {
		return err
	}
	if indent != "" {
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", indent); err != nil {
			return err
		}
		text = b.Bytes()
	}
	_, err = w.Write(printable.JSON(text))
	return err
}

// exports returns lines by which a POSIX shell exports the variables. One without a value is unset, so that no earlier
// value remains.
func exports(variables []variable) string {
	var b strings.Builder
	for _, v := range variables {
		if v.value == "" {
			fmt.Fprintf(&b, "unset %s\n", v.name)
		} else {
			fmt.Fprintf(&b, "export %s=%s\n", v.name, printable.ShellWord(v.value))
		}
	}
	return b.String()
}

// none stands in a table for a missing value.
const none = "-"

// short returns d in whole seconds, or in tenths of a second below ten seconds, rounded down.
func short(d time.Duration) string {
	step := time.Second
	if d < 10*time.Second {
		step = 100 * time.Millisecond
	}
	text := d.Truncate(step).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// local returns an instant in the local time zone, in whole seconds.
func local(t time.Time) string {
	if t.IsZero() {
		return none
	}
	return t.Local().Format(time.RFC3339)
}
