package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/freeport"
)

// fakeDocker is a command line of Docker with at most one container, whose server is one that the test runs. The
// directory next to it has the files calls, address, running, volume, password, and the pipe that ends docker wait.
const fakeDocker = `#!/bin/sh
cd "${0%/*}" && echo "$*" >> calls
case "$1" in
context) cat host ;;
version) echo 27.0 ;;
run) if [ -e broken ]; then echo "no such image" >&2; exit 125; fi
	echo "$POSTGRES_PASSWORD" >> password; touch running
	case "$*" in *--volume*) touch volume ;; esac ;;
ps) if [ -e running ]; then echo 0123; fi ;;
port) cat address ;;
wait) read -r line < ended ;;
stop) echo > ended ;;
rm) rm -f running ;;
volume) case "$2" in inspect) [ -e volume ] ;; rm) rm volume ;; esac ;;
*) echo "unknown command $1" >&2; exit 1 ;;
esac
`

// newDocker returns a fake Docker and the directory of its files.
func newDocker(t *testing.T) (docker, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"docker": fakeDocker, "host": "unix:///var/run/docker.sock\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return docker(filepath.Join(dir, "docker")), dir
}

// serve runs a server on a port for the fake Docker until the test ends.
func serve(t *testing.T, dir string) {
	t.Helper()
	host, err := NewHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	port, err := freeport.Find()
	if err := errors.Join(err, host.Initialise(t.Context())); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		host.WriteFile("hba.conf", "host all all 127.0.0.1/32 trust\n"),
		os.WriteFile(filepath.Join(dir, "address"), []byte(freeport.Address(port)+"\n"), 0o600),
		host.Launch(t.Context(), t.Output(), "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
			"-c", "hba_file="+host.Path("hba.conf"), "-c", "unix_socket_directories="+host.SocketDir()),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// enterable returns a directory that the server's account can enter.
func enterable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// read returns the content of a file of the fake Docker.
func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// exists reports whether the fake Docker has a file.
func exists(t *testing.T, dir, name string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// openWith opens a database in dir with the fake Docker and no programs.
func openWith(t *testing.T, d docker, dir string) (Database, error) {
	t.Helper()
	data, err := openDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := newTestFinder(t)
	f.docker = d
	db, err := openIn(t.Context(), data, f, Options{Database: "paddock"}, true)
	if err != nil {
		return nil, errors.Join(err, data.close())
	}
	return db, nil
}

func TestContainerKeepsItsDataAndEnds(t *testing.T) {
	t.Parallel()
	d, files := newDocker(t)
	serve(t, files)
	if err := syscall.Mkfifo(filepath.Join(files, "ended"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(enterable(t), "data")
	for start := range 2 {
		db, err := openWith(t, d, dir)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), db.URL("paddock"))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !strings.Contains(db.Data(), "volume paddock-") || db.Version() == "" {
			t.Errorf("start %d: PostgreSQL %s in %s", start, db.Version(), db.Data())
		}
		for range 2 {
			if err := db.Stop(t.Context()); err != nil {
				t.Error(err)
			}
		}
		<-db.Done()
		if exists(t, files, "running") || !exists(t, files, "volume") {
			t.Errorf("start %d leaves the container, or removes its volume", start)
		}
	}
	passwords := strings.Fields(read(t, files, "password"))
	if len(passwords) != 2 || passwords[0] != passwords[1] || len(passwords[0]) < 20 {
		t.Errorf("the passwords are %q", passwords)
	}
	calls := read(t, files, "calls")
	if strings.Contains(calls, passwords[0]) {
		t.Error("other users can see the password")
	}
	if !strings.Contains(calls, "--publish 127.0.0.1::5432") || !strings.Contains(calls, "postgres:17") {
		t.Errorf("the calls are:\n%s", calls)
	}
}

func TestContainerOfADeadProcessIsReplaced(t *testing.T) {
	t.Parallel()
	d, files := newDocker(t)
	serve(t, files)
	if err := syscall.Mkfifo(filepath.Join(files, "ended"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(enterable(t), "data")
	first, err := openWith(t, d, dir)
	if err != nil {
		t.Fatal(err)
	}
	// The kernel releases the directory of a dead process. Its container runs on.
	if err := release(first.(*container).dataDir.claim); err != nil {
		t.Fatal(err)
	}
	second, err := openWith(t, d, dir)
	if err != nil {
		t.Fatal(err)
	}
	if calls := read(t, files, "calls"); strings.Count(calls, "rm --force --volumes paddock-") != 1 {
		t.Errorf("the calls are:\n%s", calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.Stop(ctx); !errors.Is(err, context.Canceled) || exists(t, files, "running") {
		t.Errorf("a stop without time: %v; running: %t", err, exists(t, files, "running"))
	}
}

func TestDockerThatCannotBeUsedIsReported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(dir string) error
		want    string
	}{
		"remote": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "host"), []byte("tcp://build.example:2376\n"), 0o600)
		}, "another machine, at tcp://build.example"},
		"no image":      {func(dir string) error { return os.WriteFile(filepath.Join(dir, "broken"), nil, 0o600) }, "no such image"},
		"not installed": {func(dir string) error { return os.Remove(filepath.Join(dir, "docker")) }, "not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, files := newDocker(t)
			if err := c.prepare(files); err != nil {
				t.Fatal(err)
			}
			dir, err := openDataDir(filepath.Join(enterable(t), "data"))
			if err != nil {
				t.Fatal(err)
			}
			f := newTestFinder(t)
			f.docker = d
			_, err = newContainer(t.Context(), dir, "17", Options{}, f)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; want %q", err, c.want)
			}
			if _, contained, err := dir.need(""); contained || err != nil {
				t.Errorf("a failed container is remembered: %v", err)
			}
			if err := dir.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDataDecidesTheVersion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, content, demanded string
		want                    need
		wantErr                 string
	}{
		"no data":               {"other", "", "16", need{major: "16"}, ""},
		"data":                  {"data/PG_VERSION", "15\n", "", need{major: "15", data: true}, ""},
		"data of the version":   {"data/PG_VERSION", "15\n", "15", need{major: "15", data: true}, ""},
		"data of another":       {"data/PG_VERSION", "15\n", "16", need{}, "written by PostgreSQL 15"},
		"a container":           {"container", `{"name":"a","major":"17"}`, "", need{major: "17", data: true}, ""},
		"a container's version": {"container", `{"name":"a","major":"17"}`, "14", need{}, "written by PostgreSQL 17"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &dataDir{dir: t.TempDir()}
			path := filepath.Join(d.dir, c.file)
			err := os.MkdirAll(filepath.Dir(path), 0o755)
			if err == nil {
				err = os.WriteFile(path, []byte(c.content), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			got, contained, err := d.need(c.demanded)
			if fmt.Sprint(got) != fmt.Sprint(c.want) || contained != (c.file == "container") && c.wantErr == "" {
				t.Errorf("%+v, in a container: %t; want %+v", got, contained, c.want)
			}
			if (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("the error is %v; want %q", err, c.wantErr)
			}
		})
	}
}
