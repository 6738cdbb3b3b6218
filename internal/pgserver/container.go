//go:build unix

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
	"slices"
	"strings"
	"sync"
	"syscall"
)

// A container is a server that Docker runs. It listens on a port of loopback and has a random password. Data that is
// kept is in a volume with the name of the container.
type container struct {
	docker  docker
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

// newContainer runs a new container for d. If it fails, as without Docker, it leaves nothing behind.
func newContainer(ctx context.Context, d *dataDir, major string, opts Options, f finder) (*container, error) {
	if err := f.docker.check(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(f.source.Log, "PostgreSQL is not installed; starting a container of postgres:%s with Docker\n", major)
	c := &container{docker: f.docker, opts: opts, dataDir: d, kept: keptContainer{
		Name:     fmt.Sprintf("paddock-%x", sha256.Sum256([]byte(d.dir)))[:24],
		Major:    major,
		Password: rand.Text(),
	}}
	text, err := json.Marshal(c.kept)
	if err == nil {
		err = writeFile(d.containerPath(), text)
	}
	if err == nil {
		err = c.launch(ctx, f.never)
	}
	if err != nil {
		return nil, errors.Join(err, c.discard())
	}
	return c, nil
}

// discard removes what a failed start has created.
func (c *container) discard() error {
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	err := c.remove()
	if _, inspect := c.docker.run(ctx, "volume", "inspect", c.kept.Name); inspect == nil {
		_, rm := c.docker.run(ctx, "volume", "rm", c.kept.Name)
		err = errors.Join(err, rm)
	}
	return errors.Join(err, os.Remove(c.dataDir.containerPath()))
}

// reopenContainer runs a container on the volume that d names. It replaces one that a dead process has left running.
func reopenContainer(ctx context.Context, d *dataDir, opts Options, f finder) (*container, error) {
	c := &container{docker: f.docker, opts: opts, dataDir: d}
	err := f.docker.check(ctx)
	if err == nil {
		c.kept, err = d.readContainer()
	}
	if err == nil {
		if err = c.launch(ctx, f.never); err != nil {
			err = errors.Join(err, c.remove())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the data of %s is in a volume of Docker, which cannot be used: %w", d.dir, err)
	}
	return c, nil
}

// remove removes the container at the end, whatever has become of the context.
func (c *container) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), dockerTimeout)
	defer cancel()
	return c.dataDir.removeContainer(ctx, c.docker)
}

// removeContainer removes the container of d, if there is one. Its volume is kept, unless that has no name.
func (d *dataDir) removeContainer(ctx context.Context, docker docker) error {
	k, err := d.readContainer()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ids, err := docker.run(ctx, "ps", "--all", "--quiet", "--filter", "name=^/?"+k.Name+"$")
	if err != nil || ids == "" {
		return err
	}
	_, err = docker.run(ctx, "rm", "--force", "--volumes", k.Name)
	return err
}

// launch creates the container, instead of one with its name, and waits until the server accepts connections.
func (c *container) launch(ctx context.Context, offline bool) error {
	if err := c.dataDir.removeContainer(ctx, c.docker); err != nil {
		return err
	}
	password := []string{"POSTGRES_PASSWORD=" + c.kept.Password}
	if _, err := c.docker.runWith(ctx, password, c.runArguments(offline)...); err != nil {
		return err
	}
	wait := c.docker.command(context.Background(), "wait", c.kept.Name)
	wait.SysProcAttr = attributes(account{}, syscall.SIGKILL)
	var err error
	if c.ended, err = start(wait, nil); err != nil {
		return err
	}
	// There is a line for each address, and the server has one.
	published, err := c.docker.run(ctx, "port", c.kept.Name, "5432/tcp")
	if err != nil {
		return err
	}
	c.address, _, _ = strings.Cut(published, "\n")
	c.version, err = ready(ctx, c.URL("postgres"), c.opts.Database, c.ended.exited)
	if err != nil {
		err = c.withLog(err)
	}
	return err
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
	out, logErr := c.docker.command(ctx, "logs", "--tail", "20", c.kept.Name).CombinedOutput()
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
	_, err := c.docker.run(ctx, "stop", c.kept.Name)
	if ctx.Err() != nil {
		err = fmt.Errorf("postgres: the server did not stop in time and was killed: %w", context.Cause(ctx))
	}
	return errors.Join(err, c.remove(), c.dataDir.close())
}
