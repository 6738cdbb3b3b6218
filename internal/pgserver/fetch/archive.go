//go:build unix

package fetch

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// The bounds of an archive: several times the sizes of today's.
const (
	maxDownload = 256 << 20
	maxUnpacked = 1 << 30
	maxFiles    = 20_000
)

// An unpacker writes the files of an archive below a directory and nowhere else.
type unpacker struct {
	root  *os.Root
	files int
	bytes int64
}

// unpack writes the files of a tar archive whose names begin with prefix into dir, without the prefix. Owners, times
// and modes of the archive are ignored: every file is readable, and those in bin/ and lib/ are executable.
func unpack(ctx context.Context, archive io.Reader, prefix, dir string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	u := &unpacker{root: root}
	for entries := tar.NewReader(cancellable{ctx, archive}); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("the archive is damaged: %w", err)
		}
		name, ok := strings.CutPrefix(path.Clean(header.Name), prefix)
		if !ok || name == "." {
			continue
		}
		if err := u.entry(name, header, entries); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

// A cancellable is a reader that fails when its context ends.
type cancellable struct {
	ctx  context.Context
	from io.Reader
}

func (c cancellable) Read(b []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.from.Read(b)
}

func (u *unpacker) entry(name string, header *tar.Header, content io.Reader) error {
	if !filepath.IsLocal(name) {
		return errors.New("the name leads out of the archive")
	}
	if u.files++; u.files > maxFiles {
		return fmt.Errorf("the archive has more than %d files", maxFiles)
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(name, 0o755)
	case tar.TypeReg:
		return u.file(name, content)
	case tar.TypeSymlink:
		return u.link(path.Join(path.Dir(name), header.Linkname), name)
	default:
		return fmt.Errorf("the entry has the unexpected type %q", header.Typeflag)
	}
}

func (u *unpacker) file(name string, content io.Reader) (err error) {
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(name, "bin/") || strings.HasPrefix(name, "lib/") {
		mode = 0o755
	}
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	n, err := io.Copy(file, io.LimitReader(content, maxUnpacked-u.bytes+1))
	if u.bytes += n; u.bytes > maxUnpacked {
		return fmt.Errorf("the archive has more than %d bytes", maxUnpacked)
	}
	return errors.Join(err, file.Chmod(mode)) // whatever the umask
}

// link makes name a symbolic link to target. Both are paths from the top of the archive.
func (u *unpacker) link(target, name string) error {
	if !filepath.IsLocal(target) || !filepath.IsLocal(name) {
		return fmt.Errorf("the link to %s leads out of the archive", target)
	}
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	relative, err := filepath.Rel(path.Dir(name), target)
	if err != nil {
		return err
	}
	return u.root.Symlink(relative, name)
}

// digest returns a hash of the names of all files below dir and of their content. A link counts as the file that it
// leads to. Two archives with the same programs have the same digest, however they are packed.
func digest(dir string) (sum string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	total := sha256.New()
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := root.Open(name)
		if err != nil {
			return err
		}
		content := sha256.New()
		_, err = io.Copy(content, file)
		fmt.Fprintf(total, "%x  %s\n", content.Sum(nil), name)
		return errors.Join(err, file.Close())
	})
	return hex.EncodeToString(total.Sum(nil)), err
}

// verify returns an error unless dir contains exactly the programs of b.
func (b build) verify(dir string) error {
	got, err := digest(dir)
	if err == nil && got != b.Digest {
		err = fmt.Errorf("the content has the digest %s, but that of PostgreSQL %s has %s; nothing of it was run",
			got, b.version, b.Digest)
	}
	return err
}
