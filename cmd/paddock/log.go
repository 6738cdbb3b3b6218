package main

import (
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// newLog returns a log of text if w is a terminal, else of JSON.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: replaceAttribute}
	if _, _, terminal := terminalSize(w); terminal {
		return slog.New(traceHandler{slog.NewTextHandler(w, options)})
	}
	return slog.New(traceHandler{slog.NewJSONHandler(w, options)})
}

// replaceAttribute turns every duration into whole milliseconds, rounded, under a key that says so as those of the API
// do (wait becomes wait_ms), and the text of every error into one line.
func replaceAttribute(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Any().(type) {
	case time.Duration:
		return slog.Int64(a.Key+"_ms", value.Round(time.Millisecond).Milliseconds())
	case error:
		return slog.String(a.Key, joinLines(value.Error()))
	}
	return a
}

// joinLines joins the lines of a text. A line that is repeated stays once: pgx reports each attempt at a host.
func joinLines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	joined := strings.Join(lines, "; ")
	return strings.ReplaceAll(joined, ":; ", ": ")
}

// A lineError is an error whose text is one line.
type lineError struct{ error }

func (e lineError) Error() string { return joinLines(e.error.Error()) }

func (e lineError) Unwrap() error { return e.error }
