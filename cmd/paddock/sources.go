package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// sources are where the values of flags come from that the command line does not give: first the environment, then the
// configuration file, if the command has a flag for one. Otherwise the default applies.
type sources struct {
	env  lookup
	file *configFile // nil: none, or not read yet
	read bool
	err  error // of the file
}

// Where a value comes from: the greater wins.
const (
	fromDefault = iota
	fromFile
	fromEnvironment
	fromFlag
)

// A source is where a value comes from.
type source struct {
	kind     int
	variable string // of the environment
	line     int    // of the file
	value    any
}

// Validate does nothing: a file is read when the command is known.
func (s *sources) Validate(*kong.Application) error { return nil }

// Resolve returns the value of a flag, nil for its default.
func (s *sources) Resolve(c *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !s.read {
		s.read = true
		s.open(c)
	}
	return s.applied(c, flag).value, nil
}

// applied returns the source whose value the flag of the command has.
func (s *sources) applied(c *kong.Context, flag *kong.Flag) source {
	found := s.of(c, flag)
	for _, name := range counterparts(flag.Name) {
		if other := flagNamed(c, name); other != nil && s.of(c, other).kind > found.kind {
			return source{}
		}
	}
	return found
}

// counterparts returns the names of the flags that stand in for the one of that name. The one from the source that wins
// is used.
func counterparts(name string) []string {
	all := []string{databaseURLFlag, databaseURLFileFlag, cellFlagName}
	if !slices.Contains(all, name) {
		return nil
	}
	return slices.DeleteFunc(all, func(other string) bool { return other == name })
}

// open reads the configuration file of the command.
func (s *sources) open(c *kong.Context) {
	flag := flagNamed(c, "config")
	if flag == nil {
		return
	}
	path, _ := c.FlagValue(flag).(string)
	if path == "" {
		path, _ = s.find(flag).value.(string)
	}
	if path != "" {
		s.file, s.err = readConfigFile(path, fileSettings(c.Model))
	}
}

// flagNamed returns the flag of the command, nil if it has none of that name.
func flagNamed(c *kong.Context, name string) *kong.Flag {
	flags := c.Flags()
	if i := slices.IndexFunc(flags, func(f *kong.Flag) bool { return f.Name == name }); i >= 0 {
		return flags[i]
	}
	return nil
}

// of returns the source of a flag of the command.
func (s *sources) of(c *kong.Context, flag *kong.Flag) source {
	if slices.ContainsFunc(c.Path, func(p *kong.Path) bool { return p.Flag == flag && !p.Resolved }) {
		return source{kind: fromFlag}
	}
	return s.find(flag)
}

// shownFlags matches the flags in the text of an error.
var shownFlags = regexp.MustCompile(`--[a-z][a-z-]*`)

// name adds to the flags in a usage error the variables that have set them: a user who has set a variable does not look
// for a flag. It returns other errors unchanged.
func (s *sources) name(c *kong.Context, err error) error {
	if c == nil || exitCode(err) != exitUsage || errors.Is(err, errAlreadyReported) {
		return err
	}
	seen := map[string]bool{}
	text := shownFlags.ReplaceAllStringFunc(err.Error(), func(shown string) string {
		flag := flagNamed(c, strings.TrimPrefix(shown, "--"))
		if flag == nil || seen[shown] {
			return shown
		}
		seen[shown] = true
		if from := s.applied(c, flag); from.kind == fromEnvironment {
			return from.variable + " (" + shown + ")"
		}
		return shown
	})
	return &failure{exitUsage, &reworded{text, err}}
}

// find returns the source of a flag that the command line does not give. An empty variable counts as unset, but for the
// name of a schema, which refuses it. Kong's own env tag would read the environment of the process.
func (s *sources) find(flag *kong.Flag) source {
	for _, name := range variables(flag.Tag) {
		value, ok := s.env(name)
		if ok && (value != "" || flag.Target.Type() == reflect.TypeFor[schemaName]()) {
			return source{kind: fromEnvironment, variable: name, value: value}
		}
	}
	if s.file != nil {
		if v, ok := s.file.values[flag.Name]; ok {
			return source{kind: fromFile, line: v.line, value: v.value}
		}
	}
	return source{}
}

// lookup returns the value of a variable, or else that of the key of the configuration file for which it stands in.
func (s *sources) lookup(name string) (string, bool) {
	if value, ok := s.env(name); ok && value != "" || s.file == nil {
		return value, ok
	}
	for _, v := range s.file.values {
		if slices.Contains(variables(v.flag.Tag), name) {
			return fmt.Sprint(v.value), true
		}
	}
	return "", false
}

// variables returns the environment variables that stand in for a flag.
func variables(tag *kong.Tag) []string {
	return strings.FieldsFunc(tag.Get("variable"), func(r rune) bool { return r == ',' })
}
