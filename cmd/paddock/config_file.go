package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"
)

// A configFlag is the flag of the configuration file, of serve and of the commands that share flags with it.
type configFlag struct {
	Config string `placeholder:"FILE" variable:"PADDOCK_CONFIG" help:"TOML file of settings, named as the flags of paddock serve. Flags and variables win over it."`
}

// flag returns the flag as part of a command to run, empty without a file.
func (f configFlag) flag() string {
	if f.Config == "" {
		return ""
	}
	return " --config " + f.Config
}

// maxConfigFile is the maximum size of a configuration file, in bytes.
const maxConfigFile = 1 << 20

// A configFile is a configuration file whose keys and values are right.
type configFile struct {
	path   string
	values map[string]fileValue // by key, which is the name of the flag
}

// A fileValue is the value of a key.
type fileValue struct {
	flag  *kong.Flag
	value any // as a kong.Resolver returns it
	line  int
}

// fileSettings returns the flags that are keys of a configuration file: those of serve that say how it runs.
func fileSettings(model *kong.Application) []*kong.Flag {
	i := slices.IndexFunc(model.Children, func(n *kong.Node) bool { return n.Name == "serve" })
	var settings []*kong.Flag
	for _, f := range append(slices.Clone(model.Children[i].Flags), model.Flags...) {
		if f.Name != "config" && (len(variables(f.Tag)) > 0 || f.Tag.Has("filekey")) {
			settings = append(settings, f)
		}
	}
	return settings
}

// readConfigFile reads the file. Its error is a usage error that has all that is wrong in it, and no secret.
func readConfigFile(path string, settings []*kong.Flag) (*configFile, error) {
	text, err := readFile(path, maxConfigFile)
	if err != nil {
		return nil, usagef("--config: %w; give a file that paddock may read, or leave out --config and PADDOCK_CONFIG", err)
	}
	table := map[string]any{}
	if _, err := toml.Decode(string(text), &table); err != nil {
		return nil, usagef("%s%w", path, explainSyntax(string(text), err))
	}
	file := &configFile{path: path, values: map[string]fileValue{}}
	wrong := map[int]error{}
	for key, raw := range table {
		line := lineOf(string(text), key)
		value, flag, err := settingOf(settings, key, raw)
		if err == nil && key == databaseURLFlag {
			err = refuseReadableSecret(path, key, raw.(string), "put the URL into a file of its own and give "+databaseURLFileFlag)
		}
		if err == nil && key == cellFlagName {
			for _, one := range raw.([]any) {
				if _, url, _ := strings.Cut(one.(string), "="); isURL(url) {
					err = cmp.Or(err, refuseReadableSecret(path, key, url, "put the URL into a file of its own, and its path in place of the URL"))
				}
			}
		}
		if err != nil {
			wrong[line] = fmt.Errorf("%s:%d: %w", path, line, err)
			continue
		}
		file.values[key] = fileValue{flag, value, line}
	}
	if len(wrong) > 0 {
		var all []error
		for _, line := range slices.Sorted(maps.Keys(wrong)) {
			all = append(all, wrong[line])
		}
		return nil, usagef("%w", errors.Join(all...))
	}
	return file, nil
}

// quotes says how a line must be, with what is forgotten most.
const quotes = `give KEY = VALUE, with a text in quotes: listen = "` + defaultAddress + `"`

// syntaxFaults are what the parser of TOML says of a fault, and what is said instead. None repeats a value that may be a
// text.
var syntaxFaults = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`^([-+0-9_.eE]+) is out of range for .*`), "the number $1 is out of range; give one of fewer digits"},
	{regexp.MustCompile(`^Key '(.*)' has already been defined.*`), "$1 is given twice; leave one of them out"},
	{regexp.MustCompile(`^(?:expected value but found '\n'|unexpected EOF; expected value).*`), "the value is missing; " + quotes},
}

// explainSyntax returns the error of a text that is no TOML, beginning with its line. The line may have a password.
func explainSyntax(text string, err error) error {
	var wrong toml.ParseError
	if !errors.As(err, &wrong) {
		return fmt.Errorf(": %w", err)
	}
	message := strings.TrimSuffix(wrong.Message, ".")
	for _, f := range syntaxFaults {
		if f.pattern.MatchString(message) {
			return fmt.Errorf(":%d: %s", wrong.Position.Line, f.pattern.ReplaceAllString(message, f.text))
		}
	}
	if lines := strings.Split(text, "\n"); wrong.Position.Line <= len(lines) && strings.Contains(lines[wrong.Position.Line-1], ":/") {
		message = "the line is not repeated here, since a URL may have a password"
	}
	return fmt.Errorf(`:%d: not TOML: %s; %s`, wrong.Position.Line, message, quotes)
}

// located is the type of a value whose line is looked for.
type located struct{}

// UnmarshalTOML fails, with the place of the value.
func (located) UnmarshalTOML(any) error { return errors.New("here") }

// lineOf returns the line of a key in a text that is TOML.
func lineOf(text, key string) int {
	wanted := reflect.New(reflect.StructOf([]reflect.StructField{
		{Name: "Wanted", Type: reflect.TypeFor[*located](), Tag: reflect.StructTag("toml:" + strconv.Quote(key))},
	}))
	var place toml.ParseError
	if _, err := toml.Decode(text, wanted.Interface()); errors.As(err, &place) {
		return max(place.Position.Line, 1)
	}
	return 1
}

// settingOf returns the value of a key as a kong.Resolver returns it, and the flag.
func settingOf(settings []*kong.Flag, key string, raw any) (any, *kong.Flag, error) {
	i := slices.IndexFunc(settings, func(f *kong.Flag) bool { return f.Name == key })
	if i < 0 {
		return nil, nil, unknownKey(settings, key, raw)
	}
	value, err := convert(settings[i], raw)
	if err == nil {
		err = try(settings[i], value)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", key, err)
	}
	return value, settings[i], nil
}

// unknownKey returns the error of a key that is none.
func unknownKey(settings []*kong.Flag, key string, raw any) error {
	if _, nested := raw.(map[string]any); nested {
		return fmt.Errorf("%s is a table, and settings are in none; remove [%s], and give its keys before it", key, key)
	}
	wanted := strings.ToLower(strings.ReplaceAll(strings.TrimLeft(key, "-"), "_", "-"))
	wanted = strings.TrimPrefix(wanted, "paddock-")
	best := slices.MinFunc(settings, func(a, b *kong.Flag) int {
		return cmp.Or(editDistance(wanted, a.Name)-editDistance(wanted, b.Name), strings.Compare(a.Name, b.Name))
	})
	if editDistance(wanted, best.Name) <= max(1, len(best.Name)/3) {
		return fmt.Errorf("unknown key %q; did you mean %s?", key, best.Name)
	}
	return fmt.Errorf("unknown key %q; the keys are the flags of paddock serve: see docs/configuration.md, or paddock config", key)
}

// editDistance returns how many bytes must be inserted, removed or replaced to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// convert returns a value of TOML as kong takes it, or an error if it has another type than the flag.
func convert(flag *kong.Flag, raw any) (any, error) {
	kind := numberKind(flag.Target.Type())
	switch {
	case flag.IsBool():
		if b, ok := raw.(bool); ok {
			return strconv.FormatBool(b), nil
		}
		return nil, errors.New("give true or false, without quotes")
	case flag.IsSlice():
		list, ok := raw.([]any)
		if !ok || slices.ContainsFunc(list, func(e any) bool { s, isText := e.(string); return !isText || s == "" }) {
			return nil, fmt.Errorf(`give a list of texts in quotes: %s = ["%s"]`, flag.Name, flag.PlaceHolder)
		}
		return list, nil
	case kind != reflect.Invalid:
		switch n := raw.(type) {
		case int64:
			return strconv.FormatInt(n, 10), nil
		case float64:
			if kind == reflect.Float64 {
				return strconv.FormatFloat(n, 'g', -1, 64), nil
			}
		}
		if kind == reflect.Float64 {
			return nil, errors.New("give a number, without quotes")
		}
		return nil, errors.New("give a whole number, without quotes")
	}
	text, ok := raw.(string)
	switch {
	case !ok:
		return nil, fmt.Errorf(`give a text in quotes: %s = "%s"`, flag.Name, cmp.Or(flag.Default, flag.PlaceHolder, "30s"))
	case text == "":
		return nil, errors.New("is empty; give a value, or leave the key out")
	}
	return text, nil
}

// numberKind returns the kind of number of a flag of the type, or reflect.Invalid if it is no number, or one that is
// written as text, such as a duration.
func numberKind(t reflect.Type) reflect.Kind {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.PkgPath() == "" && slices.Contains([]reflect.Kind{reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64}, t.Kind()) {
		return t.Kind()
	}
	return reflect.Invalid
}

// try returns the error that the flag has with the value.
func try(flag *kong.Flag, value any) error {
	target := reflect.New(flag.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(value, kong.FlagValueToken)
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, target); err != nil {
		if target.Type() == reflect.TypeFor[slog.Level]() {
			return fmt.Errorf("%q is not a level. %s", value, strings.TrimSuffix(flag.Help, "."))
		}
		return err
	}
	if wrong := wrongDuration(flag, target); wrong != "" {
		return errors.New(wrong)
	}
	if choices := flag.EnumSlice(); flag.Enum != "" && !slices.Contains(choices, fmt.Sprint(value)) {
		return fmt.Errorf("%q is none of its values; give %s", value, strings.Join(choices, " or "))
	}
	return nil
}

// refuseReadableSecret returns an error if the URL has a password and every user of the machine can read the file.
// Configuration files are readable by default, so a warning would come too late: the password would have been seen.
func refuseReadableSecret(path, key, url, instead string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o004 == 0 || !hasPassword(url) {
		return err
	}
	return fmt.Errorf("%s: the URL has a password, and every user can read the file; run chmod o-r %s and change the "+
		"password, or %s", key, path, instead)
}

// The flags of the database, of which one stands in for the other.
const (
	databaseURLFlag     = "database-url"
	databaseURLFileFlag = "database-url-file"
)
