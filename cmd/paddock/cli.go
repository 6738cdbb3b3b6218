package main

import (
	"errors"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// A commandLine is everything that can be said to paddock. The tag variable
// names the environment variables that stand in for a flag, the first that is
// set wins.
type commandLine struct {
	LogLevel slog.Level `default:"info" variable:"PADDOCK_LOG_LEVEL" help:"Least level to log: debug, info, warn or error."`

	Serve       serveCommand       `cmd:"" group:"service" help:"Run a replica of the service."`
	Dev         devCommand         `cmd:"" group:"service" help:"Run the service with a PostgreSQL of its own, open to this machine."`
	Migrate     migrateCommand     `cmd:"" group:"service" help:"Bring the database's schema up or down."`
	Epoch       epochCommand       `cmd:"" group:"service" help:"Show, or say, that the database was failed over or restored."`
	Healthcheck healthcheckCommand `cmd:"" group:"service" help:"Ask a replica whether it is ready."`
	Key         keyCommand         `cmd:"" group:"service" help:"Say who may do what: API keys."`

	Run     runCommand     `cmd:"" group:"locks" help:"Run a command while it holds a lock."`
	Acquire acquireCommand `cmd:"" group:"locks" help:"Take a lock, or wait for it, and print the lease."`
	Renew   renewCommand   `cmd:"" group:"locks" help:"Move the end of a lease."`
	Release releaseCommand `cmd:"" group:"locks" help:"Give a lease up."`
	Get     getCommand     `cmd:"" group:"locks" help:"Show a lock, and who has it."`
	List    listCommand    `cmd:"" group:"locks" help:"Show many locks."`
	Queue   queueCommand   `cmd:"" group:"locks" help:"Show who waits for a lock, and for what."`
	Watch   watchCommand   `cmd:"" group:"locks" help:"Follow what happens."`
	Revoke  revokeCommand  `cmd:"" group:"locks" help:"Take a lease away from its holder."`

	Verify  verifyCommand  `cmd:"" group:"more" help:"Prove a running service: use it hard, and check what it answers."`
	Demo    demoCommand    `cmd:"" group:"more" help:"Show on a running service what a fencing token is for."`
	Fence   fenceCommand   `cmd:"" group:"more" help:"Put fencing into a database of yours, where the writes land."`
	Version versionCommand `cmd:"" group:"more" help:"Print what this binary is."`

	DemoWorker demoWorkerCommand `cmd:"" group:"more" hidden:""`
}

// groups returns the groups of commands in the order in which help shows them.
func groups() []kong.Group {
	return []kong.Group{
		{Key: "locks", Title: "Locks:"},
		{Key: "service", Title: "Running a service:"},
		{Key: "more", Title: "More:"},
	}
}

// A program is what a command has of the world besides its flags.
type program struct {
	env    lookup
	stdout io.Writer // for data
	stderr io.Writer // for words, besides those of the log
	log    *slog.Logger
}

// parse reads args into line. It returns nil, and no error, when help was asked
// for and has been printed.
func parse(line *commandLine, args []string, env lookup, stdout io.Writer) (*kong.Context, error) {
	helped := false
	parser, err := newParser(line, env, stdout, kong.Exit(func(int) { helped = true }))
	if err != nil {
		return nil, err
	}
	command, err := parser.Parse(args)
	if helped {
		return nil, nil
	}
	return command, misused(err)
}

// newParser returns what reads a command line into line.
func newParser(line *commandLine, env lookup, stdout io.Writer, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(line, append(more,
		kong.Name("paddock"),
		kong.Description("A distributed lock service: leases with fencing tokens, over HTTP, on PostgreSQL."),
		kong.Writers(stdout, io.Discard),
		kong.Resolvers(environment(env)),
		kong.Bind(env),
		kong.ExplicitGroups(groups()),
		kong.Help(help),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ValueFormatter(describe),
	)...)
}

// help prints help, with the commands in the order of their groups.
func help(options kong.HelpOptions, c *kong.Context) error {
	place := func(n *kong.Node) int {
		return slices.IndexFunc(groups(), func(g kong.Group) bool { return n.Group != nil && n.Group.Key == g.Key })
	}
	slices.SortStableFunc(c.Model.Children, func(a, b *kong.Node) int { return place(a) - place(b) })
	return kong.DefaultHelpPrinter(options, c)
}

// misused turns what kong found wrong into a usage error that names the help
// which would have told.
func misused(err error) error {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) {
		return err
	}
	help := "paddock"
	if wrong.Context != nil && wrong.Context.Selected() != nil {
		help = wrong.Context.Selected().FullPath()
	}
	if strings.Contains(wrong.Error(), "://") {
		return usagef("a URL stands where none is expected, and is not repeated here (see %s --help)", help)
	}
	said := uuids.ReplaceAllString(wrong.Unwrap().Error(), "(a UUID, not repeated here)")
	return usagef("%s (see %s --help)", apiKeys.ReplaceAllString(said, "(an API key, not repeated here)"), help)
}

// apiKeys finds what may be an API key.
var apiKeys = regexp.MustCompile(`pk_[0-9A-Za-z]+_[0-9A-Za-z_-]+`)

// uuids finds what may be a lease_id, which is a secret.
var uuids = regexp.MustCompile(`[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}`)

// environment finds the values of flags in env. Kong's own tag env would read
// that of the process instead.
func environment(env lookup) kong.ResolverFunc {
	return func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		for _, name := range variables(flag.Tag) {
			if value, ok := env(name); ok && value != "" {
				return value, nil
			}
		}
		return nil, nil
	}
}

func variables(tag *kong.Tag) []string {
	return strings.FieldsFunc(tag.Get("variable"), func(r rune) bool { return r == ',' })
}

// describe is a flag's help together with its variables.
func describe(value *kong.Value) string {
	names := variables(value.Tag)
	if len(names) == 0 {
		return value.Help
	}
	return value.Help + " [$" + strings.Join(names, ", $") + "]"
}
