package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/pgversion"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/store"
)

// maxClockSkew is how far the clock of this machine may be from the database's. Leases are measured by the database's
// alone; this machine's decides when API keys and certificates expire.
const maxClockSkew = time.Minute

// A check looks at one thing that serve needs. It returns what it found.
type check struct {
	name string
	run  func(context.Context) (found string, err error)
}

// check runs all checks, prints a line for each, and returns an error if one failed.
func (c *serveCommand) check(ctx context.Context, p *program) error {
	c.Wait = 0
	checks := []check{
		{"settings", func(context.Context) (string, error) { return c.checkSettings(p.sources) }},
		{"listen", c.checkListen},
		{"metrics", c.checkMetrics},
		{"API keys", func(context.Context) (string, error) { return c.checkKeys(time.Now()) }},
		{"certificate", func(context.Context) (string, error) { return c.checkCertificate(time.Now()) }},
		{"open files", c.checkFileLimit},
	}
	failed, err := c.report(ctx, p, checks)
	if err != nil {
		return err
	}
	cells, err := c.cells()
	if err != nil {
		return err
	}
	all := len(checks)
	for _, d := range cells {
		n, wrong, err := c.checkCell(ctx, p, d)
		if err != nil {
			return err
		}
		all, failed = all+n, failed+wrong
	}
	if failed > 0 {
		err = fmt.Errorf("%d of %d checks failed; the lines above say what to do", failed, all)
	}
	return err
}

// checkCell checks one database. It returns how many checks there were, and how many failed.
func (c *serveCommand) checkCell(ctx context.Context, p *program, d cellDatabase) (all, failed int, err error) {
	checks := []check{
		{"schema" + d.of(), func(ctx context.Context) (string, error) { return c.checkMigrated(ctx, d) }},
		{"rights" + d.of(), func(ctx context.Context) (string, error) { return c.checkRights(ctx, d) }},
		{"clock" + d.of(), func(ctx context.Context) (string, error) { return checkClock(ctx, d) }},
	}
	unreached, err := c.report(ctx, p, []check{{"database" + d.of(), func(ctx context.Context) (string, error) { return checkDatabase(ctx, d) }}})
	if err != nil {
		return 0, 0, err
	}
	if unreached > 0 { // nothing can be said of what is in it
		for i := range checks {
			checks[i].run = func(context.Context) (string, error) {
				return "", notChecked("the database does not answer, or refuses")
			}
		}
	}
	wrong, err := c.report(ctx, p, checks)
	return 1 + len(checks), unreached + wrong, err
}

// notChecked, as the error of a check, says why it could not run. It is no failure of its own.
type notChecked string

func (why notChecked) Error() string { return "not checked: " + string(why) }

// report runs the checks and prints their lines. It returns how many failed, or why it could not print.
func (c *serveCommand) report(ctx context.Context, p *program, checks []check) (failed int, err error) {
	for _, check := range checks {
		verdict := "ok"
		found, wrong := check.run(ctx)
		if errors.As(wrong, new(notChecked)) {
			verdict, found = none, wrong.Error()
		} else if wrong != nil {
			verdict, found = "wrong", joinLines(p.sources.name(p.command, wrong).Error())
			failed++
		}
		var line table
		line.field(fmt.Sprintf("%-5s  %-11s", verdict, check.name), found)
		if err := line.write(p.stdout, p.style(asTable)); err != nil {
			return failed, err
		}
	}
	return failed, nil
}

func (c *serveCommand) checkSettings(given *sources) (string, error) {
	if err := errors.Join(c.settings.check(), c.accessFlags.check()); err != nil {
		return "", err
	}
	if given.file == nil {
		return "no configuration file", nil
	}
	return fmt.Sprintf("%d from %s", len(given.file.values), given.file.path), nil
}

func (c *serveCommand) checkListen(ctx context.Context) (string, error) {
	if c.Listen == systemdSocket {
		return "the socket that systemd passes at the start", nil
	}
	address, err := c.address(ctx)
	if err != nil {
		return "", err
	}
	return tryBind(ctx, "--listen", address)
}

func (c *serveCommand) checkMetrics(ctx context.Context) (string, error) {
	address, err := c.metricsAddress(ctx)
	if err != nil || address == "" {
		return "at --listen, under /metrics", err
	}
	if main, err := c.address(ctx); err == nil {
		if err := checkApart(main, address); err != nil {
			return "", err
		}
	}
	return tryBind(ctx, metricsFlag, address)
}

// tryBind listens on the address for a moment. An address in use by Paddock is right: a replica may run with these
// settings.
func tryBind(ctx context.Context, flag, address string) (string, error) {
	if path, unix := strings.CutPrefix(address, unixScheme); unix {
		return tryBindSocket(ctx, flag, path)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && paddockAnswers(ctx, address):
		return address + inUse, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return "", inUseBy("another process", flag, address)
	case err != nil:
		return "", fmt.Errorf("%w; give another address with %s", err, flag)
	}
	return address, listener.Close()
}

const inUse = ", where a Paddock runs now; a start needs it to be free"

// tryBindSocket does the same at a path. A missing folder is right if paddock.service makes it at the start.
func tryBindSocket(ctx context.Context, flag, path string) (string, error) {
	stale, err := isStale(ctx, path)
	switch {
	case errors.Is(err, errSocketInUse) && paddockAnswers(ctx, unixScheme+path):
		return "the socket " + path + inUse, nil
	case stale:
		return "the socket " + path + ", which no process serves; a start replaces it", nil
	}
	folder := filepath.Dir(path)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		if !strings.HasPrefix(folder+"/", runtimeFolder+"/") {
			return "", fmt.Errorf("the folder %s of %s does not exist; make it, or choose another path", folder, flag)
		}
		return "the socket " + path + ", whose folder does not exist now; RuntimeDirectory= of paddock.service makes it at the start", nil
	}
	listener, err := bindSocket(ctx, flag, path)
	if err != nil {
		return "", err
	}
	return "the socket " + path, listener.Close()
}

// runtimeFolder is the folder that RuntimeDirectory= of paddock.service makes.
const runtimeFolder = "/run/paddock"

// checkKeys returns how many API keys are valid.
func (c *serveCommand) checkKeys(now time.Time) (string, error) {
	if c.AuthFile == "" {
		return "not required: there is no --auth-file", nil
	}
	keys, err := access.ReadFile(c.AuthFile)
	if err != nil {
		return "", explainAuthFile(err)
	}
	valid := slices.DeleteFunc(keys, func(k access.Key) bool { return k.Expired(now) })
	if len(valid) == 0 {
		return "", fmt.Errorf("no key in %s is valid, so every call would be refused; create one with paddock key new --auth-file %[1]s", c.AuthFile)
	}
	return fmt.Sprintf("%d valid in %s", len(valid), c.AuthFile), nil
}

// checkCertificate returns the names and the end of the certificate.
func (c *serveCommand) checkCertificate(now time.Time) (string, error) {
	if err := c.tlsFlags.check(); err != nil {
		return "", err
	}
	loaded, err := c.loadCertificates(quiet())
	if err != nil || loaded == nil {
		return "none: TLS is not served", err
	}
	leaf := loaded.config.Certificates[0].Leaf
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	var wrong []error
	if err := checkValidity(c.TLSCert, leaf, now); err != nil {
		wrong = append(wrong, err)
	}
	if host := certifiedHost(c.Listen); len(names) == 0 {
		wrong = append(wrong, fmt.Errorf("%s names no host, so that clients refuse it; issue one with the service's names as subject alternative names", c.TLSCert))
	} else if host != "" && leaf.VerifyHostname(host) != nil {
		wrong = append(wrong, fmt.Errorf("%s is for %s, and not for %s of --listen; issue one that names it, too", c.TLSCert, strings.Join(names, ", "), host))
	}
	return fmt.Sprintf("for %s, until %s", strings.Join(names, ", "), local(leaf.NotAfter)), errors.Join(wrong...)
}

// certifiedHost returns the host by which clients reach the address, empty if the address does not say.
func certifiedHost(address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip, bad := netip.ParseAddr(host); err != nil || bad == nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		return ""
	}
	return host
}

func (c *serveCommand) checkFileLimit(context.Context) (string, error) {
	limit := openFileLimit()
	connections := c.maxConnections(limit)
	if !enoughFiles(limit, connections) {
		return "", fmt.Errorf("the limit is %d, and --max-connections %d needs %d; raise it (ulimit -n, LimitNOFILE=), or lower the flag",
			limit, connections, connections+reservedFiles)
	}
	return fmt.Sprintf("enough for %d connections", connections), nil
}

// quiet is the log of checks, whose lines say all that matters.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func checkDatabase(ctx context.Context, d cellDatabase) (found string, err error) {
	err = d.withConn(ctx, func(conn *pgx.Conn) error {
		found = fmt.Sprintf("%s on %s, PostgreSQL %s", conn.Config().Database, cmp.Or(conn.Config().Host, "this machine"),
			conn.PgConn().ParameterStatus("server_version"))
		_, err := pgversion.Require(ctx, conn.PgConn())
		return err
	})
	return found, err
}

// withConn calls use with a connection. It does not wait for the database.
func (c cellDatabase) withConn(ctx context.Context, use func(*pgx.Conn) error) error {
	return c.reached(ctx, quiet(), func(string) error {
		conn, err := c.connect(ctx)
		if err != nil {
			return err
		}
		return errors.Join(use(conn), conn.Close(ctx))
	})
}

func (c *serveCommand) checkMigrated(ctx context.Context, d cellDatabase) (found string, err error) {
	err = d.reached(ctx, quiet(), func(url string) error {
		version, err := migrations.Version(ctx, url, string(c.Schema))
		switch latest := migrations.Latest(); {
		case err != nil:
			return err
		case version < latest && c.Migrate:
			found = fmt.Sprintf("%s at version %d; the start migrates it to %d", c.Schema, version, latest)
			return migrations.CheckRights(ctx, url, string(c.Schema))
		case version > latest:
			found = fmt.Sprintf("%s at version %d, newer than this binary's %d; a start goes on with it, or says that it cannot", c.Schema, version, latest)
			return nil
		}
		found = fmt.Sprintf("%s at version %d", c.Schema, version)
		return c.checkVersion(version, quiet())
	})
	return found, err
}

// checkRights checks what a Store needs: the rights of the role, the objects of the schema, and the way to the database.
func (c *serveCommand) checkRights(ctx context.Context, d cellDatabase) (string, error) {
	var version uint
	err := d.reached(ctx, quiet(), func(url string) (err error) {
		version, err = migrations.Version(ctx, url, string(c.Schema))
		if err != nil || version < migrations.Latest() {
			return err
		}
		given := c.store(quiet()) // whose other options are looked at with the settings
		return store.Check(ctx, url, store.Options{Log: quiet(), Schema: string(c.Schema), Cell: d.name, BatchWorkers: given.BatchWorkers,
			TransactionPooling: given.TransactionPooling})
	})
	if err == nil && version < migrations.Latest() {
		return "", notChecked("the schema must be migrated first")
	}
	return "the role has all that serve needs", err
}

func checkClock(ctx context.Context, d cellDatabase) (found string, err error) {
	err = d.withConn(ctx, func(conn *pgx.Conn) error {
		var now time.Time
		sent := time.Now()
		if err := conn.QueryRow(ctx, "select clock_timestamp()").Scan(&now); err != nil {
			return err
		}
		skew := max(sent.Sub(now), time.Until(now), 0).Round(time.Millisecond)
		if skew > maxClockSkew {
			return fmt.Errorf("it is %v away from the database's, and decides when API keys and certificates expire; synchronize both machines, with chrony for example", skew)
		}
		found = fmt.Sprintf("within %v of the database's", max(skew, time.Second).Truncate(time.Second))
		return nil
	})
	return found, err
}
