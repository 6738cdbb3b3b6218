package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

type manCommand struct {
	Dir string `arg:"" complete:"dir" help:"The folder to write to; it is made if it is missing."`
}

func (manCommand) Help() string {
	return `Writes the manual pages, made from what --help prints: paddock.1, and one of each command, such as
paddock-run.1. The packages for Debian and RPM install them.

    paddock man ~/.local/share/man/man1
    man paddock-run

The pages have the date of SOURCE_DATE_EPOCH, if that is set, else of today.`
}

// Run writes the pages.
func (c *manCommand) Run(p *program) error {
	at, err := p.buildTime()
	if err != nil {
		return err
	}
	var line commandLine
	parser, err := newParser(&line, &sources{env: p.env}, p.stdout)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	for _, n := range shownNodes(parser.Model.Node) {
		page := manPage(n, at.Format(time.DateOnly), version().Version)
		if err := os.WriteFile(filepath.Join(c.Dir, pageName(n)+".1"), []byte(page), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// buildTime returns the time of SOURCE_DATE_EPOCH, by which builds are reproducible, or the current one.
func (p *program) buildTime() (time.Time, error) {
	text, ok := p.env("SOURCE_DATE_EPOCH")
	if !ok {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, usagef("SOURCE_DATE_EPOCH is %q; give seconds since 1970, or leave it out", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// shownNodes returns the node and the commands below it that help shows, each after the one that it belongs to.
func shownNodes(n *kong.Node) []*kong.Node {
	found := []*kong.Node{n}
	for _, child := range n.Children {
		if !child.Hidden {
			found = append(found, shownNodes(child)...)
		}
	}
	return found
}

// pageName returns the name of the manual page of a command: paddock-key-new.
func pageName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// A roff is a manual page in the macros of man(7).
type roff struct{ strings.Builder }

// roffCharacters replaces what has a meaning in roff, or would be printed as a similar character.
var roffCharacters = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)

// escaped returns the text as roff prints it.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range roffCharacters.Replace(text) {
		if r > '~' {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// macro writes a line with a macro and its arguments.
func (r *roff) macro(name string, arguments ...string) {
	r.WriteString("." + name)
	for _, a := range arguments {
		r.WriteString(` "` + escaped(a) + `"`)
	}
	r.WriteString("\n")
}

// text writes lines of text.
func (r *roff) text(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		line = escaped(strings.TrimSuffix(line, "\n"))
		if strings.HasPrefix(line, ".") {
			line = `\&` + line
		}
		r.WriteString(line + "\n")
	}
}

// item writes a term and what it means.
func (r *roff) item(term, meaning string) {
	r.macro("TP")
	r.WriteString(`\fB` + escaped(term) + `\fR` + "\n")
	r.text(meaning)
}

// blocks writes paragraphs, and indented lines as they are.
func (r *roff) blocks(blocks []string) {
	for i, block := range blocks {
		indented := strings.HasPrefix(block, "    ")
		switch {
		case indented:
			r.macro("PP")
			r.macro("RS", "4")
			r.macro("nf")
			r.text(strings.ReplaceAll("\n"+block, "\n    ", "\n")[1:])
			r.macro("fi")
			r.macro("RE")
		case i > 0:
			r.macro("PP")
			r.text(block)
		default:
			r.text(block)
		}
	}
}

// blocksOf returns the paragraphs and the indented parts of a help text, without blank lines at their ends. Blank lines
// between indented lines stay.
func blocksOf(help string) (blocks []string) {
	for block := range strings.SplitSeq(help, "\n\n") {
		block = strings.Trim(block, "\n")
		last := len(blocks) - 1
		switch {
		case block == "":
		case last >= 0 && strings.HasPrefix(block, "    ") && strings.HasPrefix(blocks[last], "    "):
			blocks[last] += "\n\n" + block
		default:
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// manPage returns the manual page of a command.
func manPage(n *kong.Node, date, release string) string {
	r := new(roff)
	fmt.Fprintf(r, ".TH %s 1 %s \"paddock %s\" \"Paddock manual\"\n", strings.ToUpper(pageName(n)), date, release)
	r.macro("SH", "NAME")
	r.text(pageName(n) + " - " + strings.TrimSuffix(n.Help, "."))
	usage, description := usageOf(n)
	r.macro("SH", "SYNOPSIS")
	for i, line := range usage {
		if i > 0 {
			r.macro("br")
		}
		r.text(line)
	}
	r.macro("SH", "DESCRIPTION")
	r.blocks(append([]string{n.Help}, description...))
	r.commands(n)
	r.arguments(n)
	r.options(n)
	r.macro("SH", "EXIT STATUS")
	for _, e := range exitTexts() {
		r.item(e.code, e.text)
	}
	r.seeAlso(n)
	return r.String()
}

// usageOf returns how a command is called, and the rest of its help text, which may begin with that.
func usageOf(n *kong.Node) (usage, description []string) {
	description = blocksOf(n.Detail)
	if len(description) > 0 && strings.HasPrefix(description[0], n.FullPath()+" [") {
		return strings.Split(description[0], "\n"), description[1:]
	}
	return []string{strings.Join(strings.Fields("paddock "+n.Summary()), " ")}, description
}

// commands writes the commands below the node, in their groups.
func (r *roff) commands(n *kong.Node) {
	for _, group := range append(groups(), kong.Group{Title: "Commands:"}) {
		headed := false
		for _, child := range n.Children {
			inGroup := child.Group != nil && child.Group.Key == group.Key || n.Parent != nil && group.Key == ""
			if child.Hidden || !inGroup {
				continue
			}
			if !headed {
				r.macro("SH", strings.ToUpper(strings.TrimSuffix(group.Title, ":")))
				headed = true
			}
			r.item(pageName(child)+"(1)", child.Help)
		}
	}
}

func (r *roff) arguments(n *kong.Node) {
	if len(n.Positional) > 0 {
		r.macro("SH", "ARGUMENTS")
	}
	for _, a := range n.Positional {
		r.item("<"+a.Name+">", describe(a))
	}
}

// options writes the flags of the command, and then those of every command.
func (r *roff) options(n *kong.Node) {
	r.macro("SH", "OPTIONS")
	all := n.AllFlags(true)
	slices.Reverse(all)
	for _, group := range all {
		for _, f := range group {
			r.item(f.String(), describe(f.Value))
		}
	}
}

func (r *roff) seeAlso(n *kong.Node) {
	var pages []string
	if n.Parent != nil {
		pages = append(pages, pageName(n.Parent)+"(1)")
		for _, sibling := range n.Parent.Children {
			if sibling != n && !sibling.Hidden && n.Parent.Parent != nil {
				pages = append(pages, pageName(sibling)+"(1)")
			}
		}
	}
	r.macro("SH", "SEE ALSO")
	r.text(strings.Join(append(pages, "https://github.com/paddock-lock/paddock"), ",\n"))
}
