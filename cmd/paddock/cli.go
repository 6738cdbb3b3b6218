package main

import (
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/alecthomas/kong"
)

// A commandLine is everything that can be said to paddock. The tag variable
// names the environment variables that stand in for a flag, the first that is
// set wins.
type commandLine struct {
	LogLevel slog.Level `default:"info" variable:"PADDOCK_LOG_LEVEL" help:"Least level to log: debug, info, warn or error."`

	Serve       serveCommand       `cmd:"" help:"Run a replica of the service."`
	Dev         devCommand         `cmd:"" help:"Run the service with a PostgreSQL of its own, open to this machine."`
	Demo        demoCommand        `cmd:"" help:"Show on a running service what a fencing token is for."`
	Migrate     migrateCommand     `cmd:"" help:"Bring the database's schema up or down."`
	Healthcheck healthcheckCommand `cmd:"" help:"Ask a replica whether it is ready."`
	Version     versionCommand     `cmd:"" help:"Print what this binary is."`

	DemoWorker demoWorkerCommand `cmd:"" hidden:""`
}

// A program is what a command has of the world besides its flags.
type program struct {
	env    lookup
	stdout io.Writer
	log    *slog.Logger
}

// parse reads args into line. It returns nil, and no error, when help was asked
// for and has been printed.
func parse(line *commandLine, args []string, env lookup, stdout io.Writer) (*kong.Context, error) {
	helped := false
	parser, err := kong.New(line,
		kong.Name("paddock"),
		kong.Description("A distributed lock service: leases with fencing tokens, over HTTP, on PostgreSQL."),
		kong.Writers(stdout, io.Discard),
		kong.Exit(func(int) { helped = true }),
		kong.Resolvers(environment(env)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ValueFormatter(describe),
	)
	if err != nil {
		return nil, err
	}
	command, err := parser.Parse(args)
	if helped {
		return nil, nil
	}
	return command, misused(err)
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
	return usagef("%w (see %s --help)", wrong.Unwrap(), help)
}

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
