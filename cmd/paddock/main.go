package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // for once_per, where the system has no time zones

	"github.com/alecthomas/kong"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	context.AfterFunc(ctx, stop) // the next signal has its default action: it kills
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// stopSignals returns the signals that end a command. A SIGINT that the parent ignores, as a script does for its
// background jobs, stays ignored. (Go does not report whether a SIGTERM was.)
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGINT) {
		signals = append(signals, syscall.SIGINT)
	}
	return signals
}

// run runs the command of args until it is done or ctx ends, and returns its exit code. It reads no environment but
// env.
func run(ctx context.Context, args []string, env lookup, stdout, stderr io.Writer) int {
	messages := &console{w: stderr}
	err := execute(ctx, args, env, stdout, messages)
	if err != nil && !errors.Is(err, errAlreadyReported) {
		fmt.Fprintf(&folder{w: messages, keep: toCopy}, "paddock: %v\n", err) // the exit code tells, too
	}
	return exitCode(err)
}

func execute(ctx context.Context, args []string, env lookup, stdout io.Writer, stderr *console) error {
	var line commandLine
	given := &sources{env: env}
	if len(args) == 0 {
		_, err := parse(&line, []string{"--help"}, given, stderr)
		return cmp.Or(err, error(&failure{exitUsage, errAlreadyReported}))
	}
	command, err := parse(&line, args, given, stdout)
	if err != nil || command == nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	err = command.Run(&program{args: args, env: env, sources: given, command: command, stdout: stdout, stderr: stderr, log: newLog(stderr, line.LogLevel)})
	return given.name(command, err)
}

// A commandLine is what kong parses the arguments into. The tag variable names the environment variables that stand in
// for a flag; the first that is set wins. The tag unset says what applies without a flag that has no fixed default.
type commandLine struct {
	LogLevel    slog.Level  `default:"info" placeholder:"LEVEL" complete:"debug,info,warn,error" variable:"PADDOCK_LOG_LEVEL" help:"Minimum level to log: debug, info, warn or error."`
	ShowVersion versionFlag `name:"version" help:"Print the version."`

	Serve       serveCommand       `cmd:"" group:"service" help:"Run a replica of the service."`
	Dev         devCommand         `cmd:"" group:"service" help:"Run the service on this machine with its own PostgreSQL and without API keys."`
	Migrate     migrateCommand     `cmd:"" group:"service" help:"Migrate the database schema up or down."`
	Epoch       epochCommand       `cmd:"" group:"service" help:"Inspect or start a database epoch after a fail-over or restore."`
	Cell        cellCommand        `cmd:"" group:"service" help:"Show the cells of a deployment with several databases."`
	Service     serviceCommand     `cmd:"" group:"service" help:"Show the replicas, the databases and the settings of a running service."`
	Healthcheck healthcheckCommand `cmd:"" group:"service" help:"Check that a replica is ready."`
	Key         keyCommand         `cmd:"" group:"service" help:"Manage API keys."`
	Config      configCommand      `cmd:"" group:"service" help:"Show each setting of serve, its value, and where it comes from."`

	Run     runCommand     `cmd:"" group:"locks" help:"Run a command while it holds a lock."`
	Lead    leadCommand    `cmd:"" group:"locks" help:"Run a command while this process leads."`
	Leader  leaderCommand  `cmd:"" group:"locks" help:"Show who leads, once or at each change."`
	Session sessionCommand `cmd:"" group:"locks" help:"Run a command in a session that keeps its locks alive."`
	Acquire acquireCommand `cmd:"" group:"locks" help:"Acquire a lock, or wait for it, and print the lease."`
	Renew   renewCommand   `cmd:"" group:"locks" help:"Renew a lease."`
	Release releaseCommand `cmd:"" group:"locks" help:"Release a lease."`
	Get     getCommand     `cmd:"" group:"locks" help:"Show a lock and its holders."`
	List    listCommand    `cmd:"" group:"locks" help:"List locks."`
	Queue   queueCommand   `cmd:"" group:"locks" help:"Show the waiters of a lock, and what blocks them."`
	History historyCommand `cmd:"" group:"locks" help:"Show the last events of a lock, or who held it at an instant."`
	Events  eventsCommand  `cmd:"" group:"locks" help:"Show the last events of all locks, or follow them."`
	Watch   watchCommand   `cmd:"" group:"locks" help:"Follow the events of locks."`
	Tree    treeCommand    `cmd:"" group:"locks" help:"Declare trees, in which a lock covers the locks below it."`
	Token   tokenCommand   `cmd:"" group:"locks" help:"Verify fencing tokens."`
	Revoke  revokeCommand  `cmd:"" group:"locks" help:"Take a lease or a session away from its holder."`
	Freeze  freezeCommand  `cmd:"" group:"locks" help:"Stop new grants of locks, for maintenance."`
	Thaw    thawCommand    `cmd:"" group:"locks" help:"End a freeze."`
	Freezes freezesCommand `cmd:"" group:"locks" help:"List the freezes."`
	Rule    ruleCommand    `cmd:"" group:"locks" help:"Bound what may be asked of locks."`

	Verify     verifyCommand     `cmd:"" group:"more" help:"Put load on a running service and check that it keeps its promises."`
	Demo       demoCommand       `cmd:"" group:"more" help:"Demonstrate fencing tokens on a running service."`
	Fence      fenceCommand      `cmd:"" group:"more" help:"Install fencing into your own database."`
	Completion completionCommand `cmd:"" group:"more" help:"Print a script that completes command lines in a shell."`
	Man        manCommand        `cmd:"" group:"more" help:"Write the manual pages."`
	Version    versionCommand    `cmd:"" group:"more" help:"Print the version."`
	Help       helpCommand       `cmd:"" group:"more" help:"Show the help of a command."`

	DemoWorker demoWorkerCommand `cmd:"" group:"more" hidden:""`
	Complete   completeCommand   `cmd:"" name:"__complete" group:"more" hidden:""`
}

// groups returns the groups of commands in the order in which help shows them.
func groups() []kong.Group {
	return []kong.Group{
		{Key: "locks", Title: "Locks:"},
		{Key: "service", Title: "Running a service:"},
		{Key: "more", Title: "More:"},
	}
}

// parse reads args into line. It returns nil, and no error, if it has printed help or the version.
func parse(line *commandLine, args []string, given *sources, stdout io.Writer) (*kong.Context, error) {
	printed := false
	parser, err := newParser(line, given, stdout, kong.Exit(func(int) { printed = true }))
	if err != nil {
		return nil, err
	}
	command, err := parser.Parse(args)
	switch {
	case printed:
		return nil, nil
	case given.err != nil:
		return nil, given.err
	case err != nil:
		return nil, explainParseError(given, err)
	}
	return command, given.name(command, cmp.Or(checkTexts(command.Path), checkDurations(command.Path)))
}

// checkTexts returns a usage error if the command line gives a flag an empty text, as a script does with a variable that
// is not set. Without the flag more may be allowed, or something else meant.
func checkTexts(path []*kong.Path) error {
	for _, p := range path {
		if p.Flag == nil || p.Resolved {
			continue
		}
		if v := reflect.Indirect(p.Flag.Target); (v.Kind() == reflect.String || v.Kind() == reflect.Slice) && v.Len() == 0 {
			return usagef("--%s is empty; give a value, or leave the flag out", p.Flag.Name)
		}
	}
	return nil
}

// newParser returns a parser that reads a command line into line.
func newParser(line *commandLine, given *sources, stdout io.Writer, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(line, append(more,
		kong.Name("paddock"),
		kong.Description("A distributed lock service: leases with fencing tokens, over HTTP, on PostgreSQL."),
		kong.Writers(stdout, io.Discard),
		kong.Resolvers(given),
		kong.Bind(given.env),
		kong.ExplicitGroups(groups()),
		kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ValueFormatter(describe),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), durationMapper{}),
	)...)
}

// help prints help, with the commands in the order of their groups. Lines of usage are paragraphs, since it joins lines.
func help(options kong.HelpOptions, c *kong.Context) error {
	place := func(n *kong.Node) int {
		return slices.IndexFunc(groups(), func(g kong.Group) bool { return n.Group != nil && n.Group.Key == g.Key })
	}
	slices.SortStableFunc(c.Model.Children, func(a, b *kong.Node) int { return place(a) - place(b) })
	if n := c.Selected(); n != nil {
		if usage, description := usageOf(n); len(usage) > 1 {
			n.Detail = strings.Join(append(usage, description...), "\n\n")
		}
	}
	return kong.DefaultHelpPrinter(options, c)
}

// describe returns the help of a flag or an argument, with its default and its variables.
func describe(value *kong.Value) string {
	help := value.Help
	if d := cmp.Or(value.Default, value.Tag.Get("unset")); d != "" {
		help += " [default: " + d + "]"
	}
	if names := variables(value.Tag); len(names) != 0 {
		help += " [$" + strings.Join(names, ", $") + "]"
	}
	return help
}

// Set by the linker with -X main.release=… -X main.commit=…; otherwise the build information is used.
var release, commit string

// apiVersion matches the version of openapi.yaml: the release that this source becomes.
var apiVersion = regexp.MustCompile(`(?m)^  version: (\S+)$`)

// version returns the version of this binary.
func version() server.Version {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info, release, commit)
}

// versionOf returns the version of a binary, without the v of tags: that of the release, of the module or of the commit,
// or, if the build knows none of them, that of the API with the suffix -devel. info may be nil.
func versionOf(info *debug.BuildInfo, release, commit string) server.Version {
	v := server.Version{Version: release, Commit: commit, Go: runtime.Version()}
	if info != nil {
		if info.Main.Version != "(devel)" {
			v.Version = cmp.Or(v.Version, info.Main.Version)
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Commit = cmp.Or(v.Commit, setting.Value)
			}
		}
	}
	v.Version = cmp.Or(strings.TrimPrefix(v.Version, "v"), string(apiVersion.FindSubmatch(paddock.OpenAPI)[1])+"-devel")
	return v
}

type versionCommand struct {
	outputFlags

	Licenses bool `help:"Print the licenses of the third-party software in this binary."`
}

// A versionJSON is the version as JSON shows it.
type versionJSON struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
}

func (versionCommand) Help() string {
	return `Prints the version of this binary. The server's own is in GET /healthz.

    paddock version
    paddock version -o name`
}

// Run prints the version.
func (c versionCommand) Run(p *program) error {
	if c.Licenses {
		_, err := io.WriteString(p.stdout, paddock.ThirdPartyLicenses)
		return err
	}
	v := version()
	shown := versionJSON{v.Version, v.Commit, v.Go}
	return p.print(c.Output, output{wire: shown, names: []string{v.Version}, table: func(t *table) { t.text(strings.TrimSpace(versionLine())) }})
}

// versionLine returns what the command and the flag print.
func versionLine() string {
	v := version()
	return fmt.Sprintf("paddock %s (commit %s, %s)\n", v.Version, cmp.Or(v.Commit, "unknown"), v.Go)
}

// A versionFlag prints the version, wherever it stands, as --help prints help.
type versionFlag bool

// BeforeReset prints the version. Like the flag of help it runs before required arguments are missed.
func (versionFlag) BeforeReset(parser *kong.Kong) error {
	if _, err := io.WriteString(parser.Stdout, versionLine()); err != nil {
		return err
	}
	parser.Exit(exitOK)
	return nil
}

type helpCommand struct {
	Command []string `arg:"" optional:"" complete:"command" unset:"paddock itself" help:"The command, such as run, or migrate up."`
}

func (helpCommand) Help() string {
	return `Prints what --help prints.

    paddock help run
    paddock help migrate up`
}

// Run prints the help.
func (c helpCommand) Run(p *program) error {
	var line commandLine
	_, err := parse(&line, append(c.Command, "--help"), p.sources, p.stdout)
	return err
}
