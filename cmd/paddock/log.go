package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// newLog returns a log for people if w is a terminal, else one for machines.
func newLog(w io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}
