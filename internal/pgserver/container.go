package pgserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/paddock-lock/paddock/internal/pgserver/fetch"
)

// defaultMajor is the version of containers.
const defaultMajor = fetch.DefaultMajor

// A container is a server that Docker runs. It listens on a port of loopback and has a random password. Data that is
// kept is in a volume with the name of the container.
type container struct {
	kept    keptContainer
	opts    Options
	dataDir *dataDir
	address string // HOST:PORT
	version string
	ended   *process // docker wait

	mu      sync.Mutex
	stopped bool
}

// A keptContainer is what the file container in the directory says, for the next start.
type keptContainer struct {
	Name     string `json:"name"`
	Major    string `json:"major"`
	Password string `json:"password"`
}

func (d *dataDir) readContainer() (k keptContainer, err error) {
	text, err := os.ReadFile(d.containerPath())
	if err == nil {
		err = json.Unmarshal(text, &k)
	}
	return k, err
}

// startContainer runs the container of d, and creates it if it does not exist.
func startContainer(ctx context.Context, d *dataDir, major string, opts Options, f finder) (Database, error) {
	c := &container{opts: opts, dataDir: d}
	var err error
	if c.kept, err = d.readContainer(); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(f.source.Log, "PostgreSQL is not installed; starting a container of postgres:%s with Docker\n", major)
		c.kept = keptContainer{
			Name:     fmt.Sprintf("paddock-%x", sha256.Sum256([]byte(d.dir)))[:24],
			Major:    major,
			Password: rand.Text(),
		}
		var text []byte
		if text, err = json.Marshal(c.kept); err == nil {
			err = writeFile(d.containerPath(), text)
		}
	}
	if err == nil {
		err = d.removeContainer(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := c.launch(ctx, f.never); err != nil {
		return nil, errors.Join(err, c.forget(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// forget removes the container after a failed start, and the note of it if it never ran.
func (c *container) forget(ctx context.Context) error {
	err := c.dataDir.removeContainer(ctx)
	if c.version == "" && !c.dataDir.temporary {
		if _, inspect := docker(ctx, "volume", "inspect", c.kept.Name); inspect != nil {
			err = errors.Join(err, os.Remove(c.dataDir.containerPath()))
		}
	}
	return err
}

// removeContainer removes the container of d, which a dead process may have left running. Its volume is kept, unless
// it has no name.
func (d *dataDir) removeContainer(ctx context.Context) error {
	k, err := d.readContainer()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ids, err := docker(ctx, "ps", "--all", "--quiet", "--filter", "name=^/?"+k.Name+"$")
	if err != nil || ids == "" {
		return err
	}
	_, err = docker(ctx, "rm", "--force", "--volumes", k.Name)
	return err
}

// launch creates the container and waits until the server accepts connections.
func (c *container) launch(ctx context.Context, offline bool) error {
	if _, err := dockerWith(ctx, []string{"POSTGRES_PASSWORD=" + c.kept.Password}, c.runArguments(offline)...); err != nil {
		return err
	}
	wait := exec.Command("docker", "wait", c.kept.Name)
	wait.SysProcAttr = attributes(account{}, syscall.SIGKILL)
	var err error
	if c.ended, err = start(wait, nil); err != nil {
		return err
	}
	// One line for each address; the server is published on one.
	published, err := docker(ctx, "port", c.kept.Name, "5432/tcp")
	if err != nil {
		return err
	}
	c.address, _, _ = strings.Cut(published, "\n")
	c.version, err = ready(ctx, c.URL("postgres"), c.opts.Database, c.ended.exited)
	if err != nil {
		return c.withLog(err)
	}
	return nil
}

func (c *container) runArguments(offline bool) []string {
	args := []string{
		"run", "--detach", "--name", c.kept.Name, "--publish", "127.0.0.1::5432",
		"--env", "POSTGRES_PASSWORD", "--env", "POSTGRES_USER=" + superuser, "--env", "POSTGRES_DB=postgres",
		"--env", "POSTGRES_INITDB_ARGS=--encoding=UTF8 --locale=C --data-checksums",
		// Not where the image has its volume, because that place depends on the version.
		"--env", "PGDATA=/paddock/data", "--shm-size", "256m",
	}
	if !c.dataDir.temporary {
		args = append(args, "--volume", c.kept.Name+":/paddock")
	}
	if offline {
		args = append(args, "--pull", "never")
	}
	args = append(args, "postgres:"+c.kept.Major)
	for _, name := range slices.Sorted(maps.Keys(c.opts.Settings)) {
		args = append(args, "-c", name+"="+c.opts.Settings[name])
	}
	return args
}

// withLog adds the end of the server's log to err.
func (c *container) withLog(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	out, logErr := exec.CommandContext(ctx, "docker", "logs", "--tail", "20", c.kept.Name).CombinedOutput()
	return errors.Join(err, logErr, errors.New(strings.TrimSpace(string(out))))
}

func (c *container) URL(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, c.kept.Password),
		Host:     c.address,
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

func (c *container) Version() string { return c.version }

func (c *container) Data() string {
	if c.dataDir.temporary {
		return "a container of Docker"
	}
	return "the volume " + c.kept.Name + " of Docker"
}

func (c *container) Done() <-chan struct{} { return c.ended.exited }

func (c *container) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	_, err := docker(ctx, "stop", c.kept.Name)
	if ctx.Err() != nil {
		err = fmt.Errorf("postgres: the server did not stop in time and was killed: %w", context.Cause(ctx))
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), dockerTimeout)
	defer cancel()
	return errors.Join(err, c.dataDir.removeContainer(bounded), c.dataDir.close())
}
