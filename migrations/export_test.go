package migrations

import (
	"context"
	"io/fs"
	"log/slog"
	"testing/fstest"
)

// Next returns the files of a made-up next release: those of this one, and a second migration.
func Next(up, down string) fs.FS {
	next := fstest.MapFS{
		"0002_made_up.up.sql":   {Data: []byte(up)},
		"0002_made_up.down.sql": {Data: []byte(down)},
	}
	for _, name := range this.names() {
		text, err := embedded.ReadFile(name)
		if err != nil {
			panic(err) // the files are part of the binary
		}
		next[name] = &fstest.MapFile{Data: text}
	}
	return next
}

// UpWith is Up of a release with those files.
func UpWith(ctx context.Context, files fs.FS, databaseURL string) error {
	return release{files: files, log: slog.New(slog.DiscardHandler)}.up(ctx, databaseURL)
}

// DownToWith is DownTo of a release with those files.
func DownToWith(ctx context.Context, files fs.FS, databaseURL string, to uint) error {
	return release{files: files, log: slog.New(slog.DiscardHandler)}.downTo(ctx, databaseURL, to)
}
