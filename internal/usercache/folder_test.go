//go:build unix

package usercache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// lock locks the folder until the test ends.
func lock(t *testing.T, f Folder) *Writer {
	t.Helper()
	w, err := f.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() }) // the test may have closed it
	return w
}

// write returns a function that fills an entry with one file.
func write(content string) func(dir string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o644) }
}

func TestEntryIsCompleteOrAbsent(t *testing.T) {
	t.Parallel()
	f := Folder{Path: filepath.Join(t.TempDir(), "made", "on demand")}
	w := lock(t, f)
	broken := errors.New("broken")
	_, err := w.Add("a", func(dir string) error { return errors.Join(write("half")(dir), broken) })
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if got, err := os.ReadDir(f.Path); err != nil || len(got) != 1 {
		t.Errorf("a failed entry leaves %v behind, %v", got, err)
	}
	for _, content := range []string{"first", "second"} {
		path, err := w.Add("a", write(content))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(path, "file")); string(got) != content {
			t.Errorf("the entry contains %q, %v; want %q", got, err, content)
		}
	}
	if got := f.Entries("*"); !slices.Equal(got, []string{filepath.Join(f.Path, "a")}) {
		t.Errorf("the entries are %q", got)
	}
}

func TestInterruptedEntryIsNotShownAndIsRemoved(t *testing.T) {
	t.Parallel()
	f := Folder{Path: t.TempDir()}
	left := filepath.Join(f.Path, partial+"123")
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := f.Entries("*"); len(got) != 0 {
		t.Errorf("shown: %q", got)
	}
	lock(t, f)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("not removed: %v", err)
	}
}

func TestWritersTakeTurns(t *testing.T) {
	t.Parallel()
	f := Folder{Path: t.TempDir()}
	first := lock(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Lock(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a second writer: %v", err)
	}
	entered := make(chan error)
	go func() {
		second, err := f.Lock(t.Context())
		if err == nil {
			err = second.Close()
		}
		entered <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-entered; err != nil {
		t.Error(err)
	}
}

func TestThereMayBeNoFolder(t *testing.T) {
	t.Parallel()
	if got := (Folder{}).Entries("*"); len(got) != 0 {
		t.Errorf("the entries are %q", got)
	}
	if _, err := (Folder{}).Lock(t.Context()); err == nil {
		t.Error("a Writer without a folder")
	}
}
