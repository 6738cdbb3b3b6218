package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// The forms in which data is printed.
const (
	asTable = "table"
	asJSON  = "json"
	asEnv   = "env"
)

// The outputFlags say in which form to print what is found.
type outputFlags struct {
	Output string `short:"o" enum:"table,json" default:"table" placeholder:"FORM" help:"How to print: as a table, or as json."`
}

// The envOutputFlags are those of what a shell can have as variables, too.
type envOutputFlags struct {
	Output string `short:"o" enum:"table,json,env" default:"table" placeholder:"FORM" help:"How to print: as a table, as json, or as env, lines for a POSIX shell to eval."`
}

// A variable is one of a shell's; without a value, one to be unset.
type variable struct {
	name, value string
}

// A finding is what a command has to print, in each form that it can have.
type finding struct {
	table func(sheet)
	wire  any
	env   []variable
}

// print writes what was found to standard output, all of it in one piece.
func (p *program) print(form string, f finding) error {
	var b bytes.Buffer
	if err := f.write(&b, form); err != nil {
		return err
	}
	_, err := p.stdout.Write(b.Bytes())
	return err
}

func (f finding) write(w io.Writer, form string) error {
	switch form {
	case asJSON:
		return writeJSON(w, f.wire, "  ")
	case asEnv:
		_, err := io.WriteString(w, exports(f.env))
		return err
	}
	s := newSheet(w)
	f.table(s)
	return s.Flush()
}

// writeJSON writes v and a newline. Without an indent it is one line.
func writeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(legibleJSON(b.Bytes()))
	return err
}

// exports returns lines by which a POSIX shell exports the variables. One that
// there is not is unset, so that none is left over from before.
func exports(variables []variable) string {
	var b strings.Builder
	for _, v := range variables {
		if v.value == "" {
			fmt.Fprintf(&b, "unset %s\n", v.name)
		} else {
			fmt.Fprintf(&b, "export %s=%s\n", v.name, quoted(v.value))
		}
	}
	return b.String()
}
