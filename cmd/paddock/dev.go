package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/pgserver"
	"github.com/paddock-lock/paddock/migrations"
)

type devCommand struct {
	settings
	quietFlag

	Listen    string `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Loopback address to listen on, HOST:PORT; port 0 is any free port."`
	Dir       string `xor:"data" placeholder:"DIR" unset:"paddock/dev under $XDG_DATA_HOME or ~/.local/share; /var/lib/paddock-dev for root" help:"Data directory."`
	Ephemeral bool   `xor:"data" help:"Use a temporary data directory, which is removed at the end."`
	URL       string `name:"database-url" xor:"data" placeholder:"URL" variable:"PADDOCK_DEV_DATABASE_URL" help:"Use this database instead of starting a PostgreSQL: postgres://USER:PASSWORD@HOST:5432/DATABASE. Every client on this machine gets access to the locks in it. The variables that tell serve which database to use do not apply here."`
	schemaFlag
	databaseWait
}

func (devCommand) Help() string {
	return `It needs no running server: it starts a PostgreSQL of its own, and every client on this machine has full access.

PostgreSQL comes from the first of these: the programs that are installed; those fetched before; Docker, if it runs;
or a fetch into the cache folder of the user, without root. These variables configure that:

    PADDOCK_FETCH=never            fetch nothing
    PADDOCK_FETCH_MIRROR=URL       a mirror of Maven Central, the first place to fetch from
    PADDOCK_POSTGRES_VERSION=17    use this major version

Examples:

    paddock dev
    paddock dev --ephemeral --listen 127.0.0.1:0`
}

// Run serves until ctx ends, on a PostgreSQL that it starts and stops.
func (c *devCommand) Run(ctx context.Context, p *program) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	dir, err := c.dir(p.env)
	if err != nil {
		return err
	}
	listener, err := c.bind(ctx)
	if err != nil {
		return err
	}
	if err := c.tryMetrics(ctx, addressOf(listener.Addr())); err != nil {
		return errors.Join(err, listener.Close())
	}
	db, err := c.open(ctx, p, dir)
	if err != nil {
		return p.unlessStopped(ctx, errors.Join(err, listener.Close()))
	}
	defer func() { err = errors.Join(err, stopDatabase(ctx, db)) }()
	return c.serve(ctx, p, listener, db)
}

// open starts PostgreSQL, or checks the given one.
func (c *devCommand) open(ctx context.Context, p *program, dir string) (pgserver.Database, error) {
	if c.URL != "" {
		return openGiven(ctx, p, database{URL: c.URL, schemaFlag: c.schemaFlag, databaseWait: c.databaseWait})
	}
	var doing stage
	doing.set("starting PostgreSQL")
	defer p.progress(c.Quiet, doing.line)()
	db, err := pgserver.Open(ctx, pgserver.Options{
		Dir:       dir,
		Database:  "paddock",
		Log:       p.stderr,
		Env:       p.env,
		Otherwise: "give the URL of a database with --database-url",
	})
	if err != nil && dir != "" && errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w; this user may not use %s: give another directory with --dir, or --ephemeral", err, dir)
	}
	return db, err
}

func (c *devCommand) bind(ctx context.Context) (net.Listener, error) {
	if strings.HasPrefix(c.Listen, unixScheme) {
		return nil, usagef("--listen %s: paddock dev listens on a port alone; give HOST:PORT, such as %s, or use paddock serve", c.Listen, defaultAddress)
	}
	address, err := checkAddress(ctx, "--listen", c.Listen, false)
	if errors.Is(err, errBeyondLoopback) {
		return nil, usagef("refusing to listen on %s: %w, and paddock dev requires no API keys. Listen on loopback, "+
			"such as %s, or use paddock serve",
			c.Listen, err, defaultAddress)
	}
	if err != nil {
		return nil, err
	}
	return bind(ctx, "--listen", address)
}

// tryMetrics returns an error if the address of the metrics is wrong or taken, before PostgreSQL starts.
func (c *devCommand) tryMetrics(ctx context.Context, listening string) error {
	scraped, err := c.metricsAddress(ctx)
	if err != nil {
		return err
	}
	if err := checkApart(listening, scraped); err != nil {
		return err
	}
	tried, err := c.bindMetrics(ctx)
	if err != nil {
		return err
	}
	tried.close()
	return nil
}

// serve runs the service until ctx ends or PostgreSQL does.
func (c *devCommand) serve(ctx context.Context, p *program, listener net.Listener, db pgserver.Database) error {
	ctx, cancel := whileRunning(ctx, db)
	defer cancel()
	return errors.Join(c.start(ctx, p, listener, db), lostDatabase(ctx))
}

func (c *devCommand) start(ctx context.Context, p *program, listener net.Listener, db pgserver.Database) error {
	locks := database{URL: db.URL("paddock"), schemaFlag: c.schemaFlag, databaseWait: c.databaseWait}
	err := locks.reached(ctx, p.log, func(url string) error { return migrations.Up(ctx, url, string(c.Schema), p.log) })
	if err == nil {
		err = c.welcome(p, listener.Addr(), db, originHere())
	}
	if err != nil {
		return p.unlessStopped(ctx, errors.Join(err, listener.Close()))
	}
	c.allowHold = true
	return p.serve(ctx, locks, c.settings, listener, authConfig{requireLocalHost: true}, nil)
}

var errDatabaseEnded = errors.New("PostgreSQL ended unexpectedly")

// whileRunning returns a context that ends with errDatabaseEnded when db does.
func whileRunning(ctx context.Context, db pgserver.Database) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-db.Done():
			cancel(errDatabaseEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

func lostDatabase(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errDatabaseEnded) {
		return errDatabaseEnded
	}
	return nil
}

// stopDatabase gives PostgreSQL time to shut down, although ctx has ended.
func stopDatabase(ctx context.Context, db pgserver.Database) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return db.Stop(ctx)
}

// dir returns the data directory, empty for a temporary one. For root it is not under /root, which the account that
// PostgreSQL runs as cannot enter.
func (c *devCommand) dir(env lookup) (string, error) {
	switch {
	case c.Ephemeral, c.URL != "":
		return "", nil
	case c.Dir != "":
		return c.Dir, nil
	case os.Geteuid() == 0:
		return "/var/lib/paddock-dev", nil
	}
	if data, ok := env("XDG_DATA_HOME"); ok && filepath.IsAbs(data) {
		return filepath.Join(data, "paddock", "dev"), nil
	}
	home, ok := env("HOME")
	if !ok || home == "" {
		return "", usagef("HOME is not set, so there is no data directory; give --dir or --ephemeral")
	}
	return filepath.Join(home, ".local", "share", "paddock", "dev"), nil
}

// The indented lines work when they are pasted in this order, within the ten minutes of the lease. The image has no curl.
const welcomeText = `Paddock is ready: {{.URL}}   page: {{.URL}}/ui/
Data: {{.Data}}
Database, PostgreSQL {{.Postgres}}, also for your own tables: {{.Database}}
Every client on this machine has full access. Stop with Ctrl-C.

Acquire a lock, look at it, release it:
{{if .Curl}}
  curl -i --json '{"holder":"me","ttl_ms":600000,"lease_id":"{{.LeaseID}}"}' {{.URL}}/v1/locks/{{.Lock}}/acquire
  curl -i {{.URL}}/v1/locks/{{.Lock}}
  curl -i --json '{"lease_id":"{{.LeaseID}}"}' {{.URL}}/v1/locks/{{.Lock}}/release
{{else}}
  {{.Self}} acquire {{.Lock}} --holder me --ttl 10m --lease-id {{.LeaseID}} --url {{.URL}}
  {{.Self}} get {{.Lock}} --url {{.URL}}
  {{.Self}} release {{.Lock}} --lease-id {{.LeaseID}} --url {{.URL}}
{{end}}
See a fencing token at work: {{.Self}} demo --url {{.URL}}

`

// welcome prints the addresses and commands to try. Lock and lease_id are new each time, so that the commands work
// whatever happened before.
func (c *devCommand) welcome(p *program, address net.Addr, db pgserver.Database, from origin) error {
	url, err := localURL(addressOf(address))
	if err != nil {
		return err
	}
	database, data := db.URL("paddock"), db.Data()+", kept for the next start"
	switch {
	case c.URL != "":
		database, data = "the given one", db.Data() // the URL may contain a password
	case c.Ephemeral:
		data = db.Data() + ", removed at the end"
	}
	id := uuid.New()
	text, err := template.New("welcome").Parse(welcomeText)
	if err != nil {
		return err
	}
	pathList, _ := p.env("PATH")
	return text.Execute(p.stdout, map[string]any{
		"Self": from.command(pathList), "Curl": isProgram("curl", pathList),
		"URL": url, "Postgres": db.Version(), "Data": data, "Database": database,
		"LeaseID": id.String(), "Lock": fmt.Sprintf("hello:%x", id[:2]),
	})
}
