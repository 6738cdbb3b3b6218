package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
)

// terminalSize returns the size of the terminal that w writes to, zero for a size that it does not tell. ok is false if
// w is a file, a pipe or a buffer.
func terminalSize(w io.Writer) (width, height int, ok bool) {
	if c, isConsole := w.(*console); isConsole {
		w = c.w
	}
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0, true
	}
	return width, height, true
}

// style returns how tables are shown on standard output.
func (p *program) style(format string) style {
	width, _, terminal := terminalSize(p.stdout)
	if format == asWide {
		width = 0
	}
	return style{width: width, colour: terminal && p.allowsColour()}
}

// allowsColour reports whether a terminal may be sent colours. See https://no-color.org.
func (p *program) allowsColour() bool {
	without, _ := p.env("NO_COLOR")
	return without == "" && p.movesCursor()
}

// movesCursor reports whether a terminal understands control sequences.
func (p *program) movesCursor() bool {
	name, _ := p.env("TERM")
	return name != "" && name != "dumb" && runtime.GOOS != "windows"
}

// A console is standard error. On a terminal its last line can be one that shows progress: it is rewritten in place, and
// steps aside for what else is written. It is safe for concurrent use.
type console struct {
	w io.Writer

	mu    sync.Mutex
	shown string // the line of progress; empty for none
}

// Write writes text above the line of progress.
func (c *console) Write(text []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown == "" {
		return c.w.Write(text)
	}
	whole := c.erased() + string(text)
	if bytes.HasSuffix(text, []byte("\n")) {
		whole += c.shown
	} else {
		c.shown = ""
	}
	if _, err := io.WriteString(c.w, whole); err != nil {
		return 0, err
	}
	return len(text), nil
}

// echo is what a terminal shows of the key that interrupts a command, at the end of the line of progress.
const echo = "^C"

// erased returns what erases the line of progress, without a control sequence of a certain kind of terminal.
func (c *console) erased() string {
	return "\r" + strings.Repeat(" ", screen.StringWidth(c.shown+echo)) + "\r"
}

// room returns how many columns a line of progress may have, zero for any number. In the last column of a terminal it
// might wrap, and before that there is room for the echo.
func (c *console) room() int {
	width, _, _ := terminalSize(c)
	return max(width-1-len(echo), 0)
}

// show replaces the line of progress, in one write, so that nothing flickers. It is cut to the width of the terminal.
func (c *console) show(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if room := c.room(); room > 0 {
		line = screen.Truncate(line, room, "…")
	}
	if line == c.shown {
		return
	}
	text := c.erased()
	if line != "" {
		text = "\r" + line
		if shorter := screen.StringWidth(c.shown) - screen.StringWidth(line); shorter > 0 {
			text += strings.Repeat(" ", shorter) + strings.Repeat("\b", shorter)
		}
	}
	c.shown = line
	_, _ = io.WriteString(c.w, text) // progress that cannot be shown is no failure of the command
}

// A folder writes lines that fit on the terminal that w writes to. If one of the lines of a write does not, all of them
// get narrow gaps between their columns. What does not fit into a line goes on in the next one, indented a little more if
// the line is indented or has columns.
type folder struct {
	w    io.Writer
	keep string // what lines begin with that are to be copied, and stay as they are; empty: there are none
	rest []byte // of a line without an end
}

// toCopy is what lines of messages begin with that are to be copied.
const toCopy = "    "

// gaps matches the space between two columns of text.
var gaps = regexp.MustCompile(`(\S) {3,}`)

// Write implements io.Writer.
func (f *folder) Write(text []byte) (int, error) {
	width, _, _ := terminalSize(f.w)
	return len(text), f.write(text, style{width: width})
}

func (f *folder) write(text []byte, s style) error {
	f.rest = append(f.rest, text...)
	end := bytes.LastIndexByte(f.rest, '\n') + 1
	lines := slices.Collect(strings.Lines(string(f.rest[:end])))
	f.rest = f.rest[end:]
	isWide := func(line string) bool {
		kept := f.keep != "" && strings.HasPrefix(line, f.keep)
		return s.width > 0 && !kept && screen.StringWidth(line) > s.width
	}
	compact := slices.ContainsFunc(lines, isWide)
	var b strings.Builder
	for _, line := range lines {
		if compact {
			line = gaps.ReplaceAllString(line, "$1  ")
		}
		if isWide(line) {
			prose := strings.TrimLeft(line, " ")
			indent, hang := len(line)-len(prose), 0
			if indent > 0 || strings.Contains(prose, "  ") {
				hang = columnGap
			}
			line = strings.Join(s.fold(strings.TrimSuffix(prose, "\n"), indent, hang), "\n") + "\n"
		}
		b.WriteString(line)
	}
	_, err := io.WriteString(f.w, b.String())
	return err
}

// printProse writes sentences, folded to the terminal that w writes to.
func printProse(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(&folder{w: w}, format+"\n", args...)
	return err
}

// The quietFlag is the flag of commands that show progress.
type quietFlag struct {
	Quiet bool `short:"q" help:"Show no progress on the terminal."`
}

const (
	// showProgressAfter is how long a command is silent: a quick one shows no progress.
	showProgressAfter = 300 * time.Millisecond
	// showProgressEvery is the time between two states of the line of progress.
	showProgressEvery = 500 * time.Millisecond
)

// progress shows what line returns, on a terminal, until stop is called. It shows nothing if quiet is set. line is given
// how many columns there are, zero for any number; what is longer is cut.
func (p *program) progress(quiet bool, line func(room int) string) (stop func()) {
	if _, _, terminal := terminalSize(p.stderr); quiet || !terminal {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer p.stderr.show("")
		for next := time.After(showProgressAfter); ; next = time.After(showProgressEvery) {
			select {
			case <-next:
				p.stderr.show(printable.Text(line(p.stderr.room())))
			case <-quit:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-done
	})
}

// A stage is a line of progress that says what a command does, and for how long.
type stage struct {
	mu    sync.Mutex
	text  string
	since time.Time
}

// set begins a stage.
func (s *stage) set(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.since = text, time.Now()
}

// line returns the line of progress. If there is little room the text is cut, not the time.
func (s *stage) line(room int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, took := s.text, " ("+short(time.Since(s.since).Truncate(time.Second))+")"
	if room > 0 {
		text = screen.Truncate(text, room-len(took), "…")
	}
	return text + took
}
