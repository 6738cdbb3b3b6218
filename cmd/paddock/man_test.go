package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestManualPagesHaveWhatHelpSays(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	code, stdout, stderr := call(t, map[string]string{"SOURCE_DATE_EPOCH": "1767225600"}, "man", dir)
	if code != exitOK || stdout+stderr != "" {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	page := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		mustBeNil(t, err)
		return string(text)
	}
	var line commandLine
	parser, err := newParser(&line, &sources{env: variablesOf(nil)}, t.Output())
	mustBeNil(t, err)
	nodes := shownNodes(parser.Model.Node)
	for _, n := range nodes {
		text := page(pageName(n) + ".1")
		if !regexp.MustCompile(`(?s)^\.TH \S+ 1 2026-01-01 "paddock .*\n\.SH "NAME"\n.*\n\.SH "SYNOPSIS"\n.*\n\.SH "DESCRIPTION"\n.*\n` +
			`\.SH "OPTIONS"\n.*\n\.SH "EXIT STATUS"\n.*\n\.SH "SEE ALSO"\n`).MatchString(text) {
			t.Errorf("%s lacks a section:\n%s", pageName(n), text)
		}
		for _, f := range n.Flags {
			if !strings.Contains(text, `\fB`+escaped(f.String())+`\fR`+"\n"+escaped(describe(f.Value))) {
				t.Errorf("%s lacks %s", pageName(n), f)
			}
		}
		for child := range strings.SplitSeq(text, "\n") {
			if name, ok := strings.CutSuffix(strings.TrimPrefix(child, `\fB`), `(1)\fR`); ok {
				page(strings.ReplaceAll(name, `\-`, "-") + ".1")
			}
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != len(nodes) {
		t.Errorf("%d pages of %d commands (%v)", len(files), len(nodes), err)
	}
	if text := page("paddock-run.1"); !strings.Contains(text, ".SH \"SYNOPSIS\"\npaddock run [flags] NAME \\-\\- CMD ARGS\\[u2026]\n.br\n") ||
		!strings.Contains(text, "\n.PP\n.RS \"4\"\n.nf\n*/5 * * * *  paddock run ") {
		t.Errorf("paddock-run.1 is\n%s", text)
	}
	code, _, stderr = call(t, map[string]string{"SOURCE_DATE_EPOCH": "today"}, "man", dir)
	if code != exitUsage || !strings.Contains(stderr, "SOURCE_DATE_EPOCH") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestRoffIsEscaped(t *testing.T) {
	t.Parallel()
	r := new(roff)
	r.macro("SH", `a "b"`)
	r.blocks(blocksOf("x -y\n.z\n\n    'a'\n\n      \\b\n\n…~\n"))
	want := `.SH "a \(dqb\(dq"
x \-y
\&.z
.PP
.RS "4"
.nf
\(aqa\(aq

  \eb
.fi
.RE
.PP
\[u2026]\(ti
`
	if r.String() != want {
		t.Errorf("got\n%s\nwant\n%s", r, want)
	}
}

// TestExitCodesAreInThePackageComment compares them with those of the manual pages.
func TestExitCodesAreInThePackageComment(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	mustBeNil(t, err)
	listed := regexp.MustCompile(`(?m)^//\t(\d+) +(.*)$`).FindAllStringSubmatch(string(doc), -1)
	all := exitTexts()
	if len(listed) != len(all) {
		t.Fatalf("%d exit codes, want %d", len(listed), len(all))
	}
	for i, e := range all {
		if listed[i][1] != e.code || listed[i][2] != e.text {
			t.Errorf("exit code %s %s, want %s %s", listed[i][1], listed[i][2], e.code, e.text)
		}
	}
}
