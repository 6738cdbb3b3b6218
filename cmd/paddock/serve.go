package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/metrics"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/server"
	"github.com/paddock-lock/paddock/store"
	"github.com/paddock-lock/paddock/web"
)

type serveCommand struct {
	serveFlags

	Check bool `help:"Check files, addresses and database as a start would, and that certificates and keys are valid; print a line for each; and exit. Nothing is changed."`
}

// The serveFlags say how a replica runs. All of them are keys of a configuration file.
type serveFlags struct {
	database
	settings
	accessFlags

	Listen  string `default:"127.0.0.1:8080" placeholder:"ADDRESS" variable:"PADDOCK_LISTEN" help:"Address to listen on, HOST:PORT or unix:PATH; or systemd, for the socket of a .socket unit. Beyond loopback it needs --auth-file and TLS, or --no-auth."`
	Migrate bool   `variable:"PADDOCK_MIGRATE" help:"Migrate the schema up first. Not with --cell: see paddock migrate up."`

	AllowHold bool `variable:"PADDOCK_ALLOW_HOLD" help:"Grant leases with on_expiry hold also without a quorum of the database (paddock epoch quorum on), although a fail-over may then forget one and grant its lock to another client."`
}

func (serveCommand) Help() string {
	return `Run as many replicas as you like on one database. SIGTERM ends a replica gracefully: clients that wait at it
keep their places and continue at another.

    export PADDOCK_DATABASE_URL=postgres://paddock:secret@db.example/paddock
    paddock migrate up
    paddock serve --check
    paddock serve

With several databases, which share the locks, give each as --cell NAME=URL: one that is away costs its own locks only.

For clients on other machines, with API keys and TLS:

    paddock key new --auth-file keys.json --role admin me
    paddock serve --listen :8443 --auth-file keys.json --tls-cert cert.pem --tls-key key.pem`
}

// Run serves until ctx ends. It checks the command line before it connects to the database, and listens only when it
// can answer.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	c.allowHold = c.AllowHold
	if c.Migrate && len(c.Cell) > 0 {
		return usagef("--migrate migrates one database, and cells have to be registered together; run paddock migrate up with the same --cell first")
	}
	if c.Check {
		return c.check(ctx, p)
	}
	if err := cmp.Or(c.settings.check(), c.accessFlags.check()); err != nil {
		return err
	}
	var listener net.Listener
	var err error
	if c.Listen == systemdSocket {
		if listener, err = inheritSocket(p.env); err != nil {
			return err
		}
		c.Listen = addressOf(listener.Addr())
	}
	address, err := c.address(ctx)
	if err != nil {
		return err
	}
	scraped, err := c.metricsAddress(ctx)
	if err != nil {
		return err
	}
	if err := checkApart(address, scraped); err != nil {
		return err
	}
	auth, err := c.load(p.log)
	if err != nil {
		return err
	}
	defer auth.close()
	connections := c.maxConnections(openFileLimit())
	warnOfFileLimit(p.log, openFileLimit(), connections)
	started := time.Now()
	cells, err := c.cells()
	if err != nil {
		return err
	}
	if len(c.Cell) == 0 { // cells are prepared one beside the other
		if err := c.prepare(ctx, p, cells[0]); err != nil {
			return p.unlessStopped(ctx, err)
		}
	}
	if listener == nil {
		if listener, err = bind(ctx, "--listen", address); err != nil {
			return err
		}
	}
	listener = auth.certificates.listen(limitConnections(listener, connections, p.log))
	threads, stop := context.WithCancel(ctx)
	defer stop()
	go adjustThreads(threads, p.env)
	rest := c.database
	rest.Wait = max(c.Wait-time.Since(started), 0)
	return p.serve(ctx, rest, c.settings, listener, auth, func(ctx context.Context, d cellDatabase) error { return c.prepare(ctx, p, d) })
}

func (c *serveCommand) address(ctx context.Context) (string, error) {
	if strings.HasPrefix(c.Listen, unixScheme) && c.TLSCert != "" {
		return "", usagef("--listen %s is for this machine only, and without TLS; leave out --tls-cert, --tls-key and --tls-client-ca", c.Listen)
	}
	address, err := checkAddress(ctx, "--listen", c.Listen, c.mayListenBeyondLoopback())
	if errors.Is(err, errBeyondLoopback) {
		return "", usagef("refusing to listen on %s: %w. %s", c.Listen, err, c.howToListenBeyondLoopback())
	}
	return address, err
}

// prepare waits for the database and checks its schema. A schema of a newer release stays as it is.
func (c *serveCommand) prepare(ctx context.Context, p *program, d cellDatabase) error {
	return d.reached(ctx, d.log(p.log), func(url string) error {
		if c.Migrate {
			err := migrations.Up(ctx, url, string(c.Schema), p.log)
			if newer := (*migrations.NewerError)(nil); err != nil && !errors.As(err, &newer) {
				return err
			}
		}
		return d.checkSchema(ctx, url, p.log)
	})
}

// serve runs the service on listener until ctx ends. Then it accepts no more requests, finishes the current ones, and
// disconnects from the database. It closes listener. Of several databases each is prepared before it is opened.
func (p *program) serve(ctx context.Context, db database, s settings, listener net.Listener,
	auth authConfig, prepare func(context.Context, cellDatabase) error) error {
	defer tuneGC(p.env)()
	scraped, err := s.bindMetrics(ctx)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer scraped.close()
	cells, err := db.cells()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	metered := metrics.New(version().Version, version().Commit, string(db.Schema), namesOfCells(cells)...)
	traces, flush, err := p.startTraces(ctx)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer flush()
	clients := new(server.Clients)
	stores := storeOptions{settings: s, metered: metered, traces: traces, prepare: prepare, describe: describeProcess(clients, listener.Addr())}
	serving, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	served, err := p.openStores(ctx, cells, stores, fail)
	if err != nil {
		return p.unlessStopped(ctx, errors.Join(err, listener.Close()))
	}
	defer served.close()
	started := time.Now()
	metered.Names(s.MetricsNames, served.locks, p.log)
	locks := served.locks
	if auth.keys != nil {
		locks = access.Guard(locks, auth.limits())
	}
	built := version()
	built.Schema = string(db.Schema)
	configured := servedSettings(p.sources, p.command)
	info := func(context.Context) paddock.ServiceInfo {
		return paddock.ServiceInfo{Settings: configured, Databases: served.info()}
	}
	service := server.New(server.Options{
		Locks: locks, Ready: served.ready, Drain: served.drain, Cells: served.cells, Info: info, Clients: clients,
		UI: web.New(web.Options{Locks: locks, Overview: func() web.Overview { return overviewOf(served.stats(), metered.Losses(), db.Schema, started) },
			Cells: served.cells, CellOf: served.cellOf, Paused: served.paused, Info: info, Log: p.log}),
		Log: p.log, Version: built, RequestTimeout: s.RequestTimeout, DrainDelay: s.DrainDelay,
		Keys: auth.keys, SecureCookies: auth.PlainHTTP, RequireLocalHost: auth.requireLocalHost,
		MaxStreams: auth.MaxStreams, StreamsPerKey: auth.StreamsPerKey, CORSOrigins: s.CORSOrigin,
		Metrics: metered.Handler(), Observer: metered, Traces: traces,
	})
	record := []any{
		"address", addressOf(listener.Addr()), "schema", db.Schema, "version", built.Version,
		"keys", auth.keys != nil, "tls", auth.certificates != nil, "mutual_tls", auth.TLSClientCA != "",
	}
	if served.replica != "" { // each of several cells has its own, and a record when it is open
		record = append(record, "replica", served.replica)
	}
	p.log.Info("listening", record...)
	scraped.serve(metered.Handler(), p.log)
	if err = service.Serve(serving, listener); ctx.Err() == nil {
		err = errors.Join(context.Cause(serving), err)
	}
	p.log.Info("stopped")
	return err
}

// describeProcess returns what heartbeats say of this process, which starts now, has these clients, and listens at the
// address.
func describeProcess(clients *server.Clients, at net.Addr) func() paddock.ReplicaInfo {
	host, _ := os.Hostname() // without a name, the id is shown
	if tcp, is := at.(*net.TCPAddr); is && host != "" {
		host = net.JoinHostPort(host, strconv.Itoa(tcp.Port))
	}
	self := paddock.ReplicaInfo{Host: host, Version: version().Version, StartedAt: time.Now()}
	return func() paddock.ReplicaInfo {
		now := self
		now.Connections, now.Streams = clients.Connections(), clients.Streams()
		return now
	}
}

// overviewOf returns what the admin page shows of the locks as a whole, and of the replica.
func overviewOf(s store.Stats, l metrics.Losses, in schemaName, started time.Time) web.Overview {
	return web.Overview{
		Schema: string(in), CountedAt: s.Locks.At, Known: s.Locks.All, Held: s.Locks.Held, InGrace: s.Locks.InGrace, Suspect: s.Locks.Suspect, Contended: s.Locks.Contended,
		Waiters: s.Locks.Waiters, LongestWait: s.Locks.OldestWait, LongestHeld: s.Locks.OldestLease,
		StartedAt: started, Expired: l.Expired, Revoked: l.Revoked, StaleTokens: l.Stale, Deadlocks: l.Deadlocks,
	}
}

// unlessStopped returns err, which kept the service from starting. If ctx has ended it only logs err: to be stopped
// during the start is no failure.
func (p *program) unlessStopped(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	p.log.Info("stopped before the service was ready", "error", err)
	return nil
}

// reservedFiles is how many open files a service needs beside the connections of its clients: those to the database
// (20 unless its URL says otherwise), listeners, logs, and the files of keys and certificates while they are read.
const reservedFiles = 64

// warnOfFileLimit logs a warning if the open-file limit does not allow that many connections. The service starts all
// the same: the limit matters only when that many clients connect.
func warnOfFileLimit(log *slog.Logger, limit uint64, connections int) {
	if enoughFiles(limit, connections) {
		return
	}
	log.Warn("open-file limit is below --max-connections and the reserve; raise the limit (ulimit -n, LimitNOFILE=) "+
		"or lower the flag",
		"open_files", limit, "max_connections", connections, "reserve", reservedFiles)
}

// defaultMaxConnections is the default of --max-connections where the open-file limit allows it. Containers, and
// sessions of a shell, often have lower limits, which are enough for most services.
const defaultMaxConnections = 20_000

// maxConnections returns the maximum number of open connections.
func (f accessFlags) maxConnections(fileLimit uint64) int {
	if f.MaxConnections != nil {
		return *f.MaxConnections
	}
	return max(int(min(fileLimit, defaultMaxConnections+reservedFiles))-reservedFiles, 1)
}

// enoughFiles reports whether the open-file limit allows that many connections.
func enoughFiles(limit uint64, connections int) bool {
	return limit >= uint64(connections)+reservedFiles
}

// The settings are the flags of serve and dev.
type settings struct {
	MinTTL     time.Duration `name:"min-ttl" default:"100ms" variable:"PADDOCK_MIN_TTL" help:"Shortest TTL that clients may request."`
	MaxTTL     time.Duration `name:"max-ttl" default:"24h" variable:"PADDOCK_MAX_TTL" help:"Longest TTL that clients may request."`
	DefaultTTL time.Duration `name:"default-ttl" unset:"30s, or the nearest that is allowed" variable:"PADDOCK_DEFAULT_TTL" help:"TTL of an acquire that requests none."`
	MaxGrace   time.Duration `name:"max-grace" default:"1m" variable:"PADDOCK_MAX_GRACE" help:"Longest grace that clients may request; 0s allows none."`

	MaxWaiters          int    `default:"10000" placeholder:"N" variable:"PADDOCK_MAX_WAITERS" help:"Maximum number of waiting calls, on all replicas together."`
	MaxLeasesPerSession int    `default:"100000" placeholder:"N" variable:"PADDOCK_MAX_LEASES_PER_SESSION" help:"Maximum number of leases and places of one session."`
	MaxWaitersPerLock   int    `default:"1000" placeholder:"N" variable:"PADDOCK_MAX_WAITERS_PER_LOCK" help:"Maximum number of waiting calls for one lock."`
	PoolerMode          string `enum:"none,transaction" default:"none" placeholder:"MODE" variable:"PADDOCK_POOLER_MODE" help:"Connection pooler in front of the database: none (also for a pooler in session mode), or transaction. In transaction mode LISTEN and prepared statements do not work, so Paddock uses neither; replicas poll for their waiters and notice a grant up to a second later."`

	BatchWorkers      int           `default:"1" placeholder:"N" variable:"PADDOCK_BATCH_WORKERS" help:"How many batches of commands run in parallel: 2 where service and database have eight cores to use, 4 where they have sixteen. More than 4 need more connections: set pool_max_conns in the database URL to four times as many, plus 3."`
	EventRetention    time.Duration `default:"7d" variable:"PADDOCK_EVENT_RETENTION" help:"How long to keep events."`
	IdleLockRetention time.Duration `default:"7d" variable:"PADDOCK_IDLE_LOCK_RETENTION" help:"How long to keep a free lock that is not used."`

	RequestTimeout time.Duration `default:"10s" variable:"PADDOCK_REQUEST_TIMEOUT" help:"Timeout of a request, besides the time that it asks to wait."`
	MetricsListen  string        `placeholder:"ADDRESS" variable:"PADDOCK_METRICS_LISTEN" help:"Address to serve /metrics on, HOST:PORT, without API keys and TLS; loopback if HOST is empty. Without this flag, /metrics is at --listen, for API keys with the role read."`
	MetricsNames   []string      `placeholder:"PREFIX" variable:"PADDOCK_METRICS_NAMES" help:"Give locks whose names begin with one of these prefixes metrics of their own, with their holders as labels; up to 200 locks. Separate prefixes by commas."`

	CORSOrigin []string `name:"cors-origin" placeholder:"ORIGIN" variable:"PADDOCK_CORS_ORIGIN" help:"Let pages of this origin, such as https://app.example, call the API from a browser, with an API key of their own. May be repeated. Without it, only pages of the service's own origin can."`

	allowHold bool // of serve's flag; dev's database has no standby to fail over to

	DrainDelay time.Duration `default:"0s" variable:"PADDOCK_DRAIN_DELAY" help:"How long to serve after SIGTERM while /readyz fails, so that load balancers notice."`
}

// check returns a usage error for settings that contradict each other.
func (s settings) check() error {
	if s.RequestTimeout <= 0 || s.MinTTL <= 0 {
		return usagef("--request-timeout and --min-ttl must be positive")
	}
	switch {
	case s.MinTTL < lock.MinTTL:
		return usagef("--min-ttl is %s; give %s or more", durationText(s.MinTTL), durationText(lock.MinTTL))
	case s.MaxTTL > lock.MaxTTL:
		return usagef("--max-ttl is %s; give %s or less", durationText(s.MaxTTL), durationText(lock.MaxTTL))
	case s.MinTTL > s.MaxTTL:
		return usagef("--min-ttl is %s, which is longer than --max-ttl, %s; lower one, or raise the other", durationText(s.MinTTL), durationText(s.MaxTTL))
	case s.DefaultTTL != 0 && (s.DefaultTTL < s.MinTTL || s.DefaultTTL > s.MaxTTL):
		return usagef("--default-ttl is %s; give %s to %s, which are --min-ttl and --max-ttl", durationText(s.DefaultTTL),
			durationText(s.MinTTL), durationText(s.MaxTTL))
	case s.EventRetention < time.Minute:
		return usagef("--event-retention is %s; give 1m or more", durationText(s.EventRetention))
	case s.IdleLockRetention < time.Minute:
		return usagef("--idle-lock-retention is %s; give 1m or more", durationText(s.IdleLockRetention))
	case s.MaxGrace > lock.MaxGrace:
		return usagef("--max-grace is %s; give %s or less", durationText(s.MaxGrace), durationText(lock.MaxGrace))
	}
	if err := s.store(nil).Check(); err != nil {
		return usagef("%w", err)
	}
	for _, origin := range s.CORSOrigin {
		if err := server.CheckOrigin(origin); err != nil {
			return usagef("--cors-origin: %w; give one like https://app.example", err)
		}
	}
	for _, prefix := range s.MetricsNames {
		if err := lock.CheckName(prefix); err != nil {
			return usagef("--metrics-names: %w", err)
		}
	}
	return nil
}

// bounds returns what clients may request. A zero flag of the maximum grace means zero; in Bounds it would be the
// default.
func (s settings) bounds() lock.Bounds {
	b := lock.Bounds{MinTTL: s.MinTTL, MaxTTL: s.MaxTTL, DefaultTTL: s.DefaultTTL, MaxGrace: s.MaxGrace,
		MaxWaiters: s.MaxWaitersPerLock, MaxSessionLeases: s.MaxLeasesPerSession}
	if b.MaxGrace == 0 {
		b.MaxGrace = -1
	}
	return b
}

func (s settings) store(log *slog.Logger) store.Options {
	return store.Options{
		Bounds: s.bounds(), Log: log, BatchWorkers: s.BatchWorkers, MaxWaiters: s.MaxWaiters,
		TransactionPooling: s.PoolerMode == "transaction", EventRetention: s.EventRetention, IdleLockRetention: s.IdleLockRetention,
		AllowHold: s.allowHold,
	}
}

// The accessFlags say which clients the service answers, and limit each of them.
type accessFlags struct {
	AuthFile  string `placeholder:"FILE" variable:"PADDOCK_AUTH_FILE" help:"File of API keys, as paddock key makes it: only clients with such a key are answered. It is read again when it changes."`
	NoAuth    bool   `filekey:"" help:"Serve every client that can reach the address, without API keys. There is no variable, so that no inherited one disables authentication."`
	PlainHTTP bool   `name:"plain-http" filekey:"" help:"Listen on non-loopback addresses without TLS (a proxy terminates it). API keys and lease_ids are sent in clear text between the proxy and Paddock. There is no variable."`
	tlsFlags

	RatePerKey    float64 `default:"1000" placeholder:"N" variable:"PADDOCK_RATE_PER_KEY" help:"Calls a second that each API key may make of this replica; 0 for no limit."`
	BurstPerKey   int     `default:"2000" placeholder:"N" variable:"PADDOCK_BURST_PER_KEY" help:"Calls that each API key may make at once after an idle time."`
	WaitersPerKey int     `default:"2000" placeholder:"N" variable:"PADDOCK_WAITERS_PER_KEY" help:"Maximum number of waiting calls of each API key at this replica; 0 for no limit."`
	StreamsPerKey int     `default:"200" placeholder:"N" variable:"PADDOCK_STREAMS_PER_KEY" help:"Maximum number of event streams of each API key at this replica."`

	MaxStreams     int  `default:"2000" placeholder:"N" variable:"PADDOCK_MAX_STREAMS" help:"Maximum number of event streams at this replica."`
	MaxConnections *int `unset:"20000, or what the open-file limit allows if that is less" placeholder:"N" variable:"PADDOCK_MAX_CONNECTIONS" help:"Maximum number of open connections at this replica; further ones are closed at once."`
}

// check returns a usage error for flags that contradict each other.
func (f accessFlags) check() error {
	if f.AuthFile != "" && f.NoAuth {
		return usagef("--auth-file (or PADDOCK_AUTH_FILE) requires API keys and --no-auth requires none; give one of them")
	}
	if f.PlainHTTP && f.TLSCert != "" {
		return usagef("--plain-http means that a proxy terminates TLS and --tls-cert that this service does; give one " +
			"of them")
	}
	if f.RatePerKey < 0 || f.BurstPerKey < 0 || f.WaitersPerKey < 0 || f.StreamsPerKey < 0 || f.MaxStreams < 0 {
		return usagef("--rate-per-key, --burst-per-key, --waiters-per-key, --streams-per-key and --max-streams must not " +
			"be negative")
	}
	if f.MaxConnections != nil && *f.MaxConnections < 1 {
		return usagef("--max-connections is %d; give 1 or more", *f.MaxConnections)
	}
	return cmp.Or(checkFileName("--auth-file", f.AuthFile), f.tlsFlags.check())
}

// mayListenBeyondLoopback reports whether other machines may reach the service: keys are required and sent over TLS,
// or the operator has declared that this is not needed.
func (f accessFlags) mayListenBeyondLoopback() bool {
	return f.NoAuth || f.AuthFile != "" && (f.TLSCert != "" || f.PlainHTTP)
}

// howToListenBeyondLoopback returns what is missing to listen beyond loopback.
func (f accessFlags) howToListenBeyondLoopback() string {
	if f.AuthFile == "" {
		return "Without API keys every client could acquire, release and revoke every lock. Listen on loopback " +
			"(--listen " + defaultAddress + "); or make API keys (paddock key new) and give --auth-file, --tls-cert and " +
			"--tls-key; or, if only trusted clients can reach the address, give --no-auth"
	}
	return "Without TLS the API keys could be read on the network. Give --tls-cert and --tls-key; or listen on " +
		"loopback (--listen " + defaultAddress + "); or, if a proxy terminates TLS, give --plain-http"
}

// An authConfig is what the accessFlags refer to. The zero value answers every client.
type authConfig struct {
	accessFlags
	keys             *access.Keyring
	certificates     *certificates
	requireLocalHost bool // answer only requests for localhost
}

// load reads the files of the flags. Close what it returns.
func (f accessFlags) load(log *slog.Logger) (authConfig, error) {
	a := authConfig{accessFlags: f, requireLocalHost: f.AuthFile == "" && !f.NoAuth}
	var err error
	if a.certificates, err = f.loadCertificates(log); err != nil || f.AuthFile == "" {
		return a, err
	}
	if a.keys, err = access.Open(f.AuthFile, log); err != nil {
		return a, explainAuthFile(err)
	}
	return a, nil
}

// explainAuthFile returns the usage error of a file of keys that cannot be read.
func explainAuthFile(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; create it with paddock key new", err)
	}
	return usagef("--auth-file: %w", err)
}

func (a authConfig) close() {
	if a.keys != nil {
		a.keys.Close()
	}
}

// limits returns the limits of each key.
func (f accessFlags) limits() access.Limits {
	return access.Limits{Rate: f.RatePerKey, Burst: f.BurstPerKey, Waiters: f.WaitersPerKey}
}
