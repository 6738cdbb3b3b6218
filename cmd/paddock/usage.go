package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// explainParseError returns a usage error in the words of the help, which it names. The error contains no secret.
func explainParseError(given *sources, err error) error {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) {
		return err
	}
	if strings.Contains(wrong.Error(), "://") {
		return usagef("a URL stands where none is expected; it is not repeated here (see %s --help)", commandPath(wrong.Context))
	}
	text := explainUsage(wrong.Context, wrong.Unwrap().Error())
	text = uuids.ReplaceAllString(text, "(a UUID, not repeated here)")
	text = apiKeys.ReplaceAllString(text, "(an API key, not repeated here)")
	return given.name(wrong.Context, usagef("%s (see %s --help)", text, commandPath(wrong.Context)))
}

// apiKeys matches what may be an API key.
var apiKeys = regexp.MustCompile(`pk_[0-9A-Za-z]+_[0-9A-Za-z_-]+`)

// uuids matches what may be a lease_id, which is a secret.
var uuids = regexp.MustCompile(`[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}`)

func commandPath(c *kong.Context) string {
	if c == nil || c.Selected() == nil {
		return "paddock"
	}
	return c.Selected().FullPath()
}

// What the parser says, as far as it speaks of itself.
var (
	missingFlags     = regexp.MustCompile(`^missing flags: (.*)`)
	missingCommand   = regexp.MustCompile(`^expected one of "`)
	missingArguments = regexp.MustCompile(`^expected "(<.*>.*)"$`)
	notInEnum        = regexp.MustCompile(`^(\S+) must be one of (.*) but got "(.*)"$`)
	excluded         = regexp.MustCompile(`^--\S+ and --\S+ can't be used together$`)
	wrongValue       = regexp.MustCompile(`^(--[a-z-]+|\[?<[a-z-]+>(?: \.\.\.)?\]?): (.*)$`)
	flagNames        = regexp.MustCompile(`--([a-z-]+)`)
	argumentNames    = regexp.MustCompile(`<([a-z-]+)>`)
)

// parserValues are what the parser says of a value, and what is said instead.
var parserValues = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`^expected \w+ value but got "[^"]*" \(.*\).*`), "the value is missing"},
	{regexp.MustCompile(`^missing value, expecting .*`), "the value is missing"},
	{regexp.MustCompile(`^(?:expected an? (?:valid \d+ bit )?u?int but got|strconv\.\w+: parsing) ("[^"]*").*`), "$1 is not a whole number"},
	{regexp.MustCompile(`^expected a float but got ("[^"]*").*`), "$1 is not a number"},
	{regexp.MustCompile(`^bool value must be .* but got ("[^"]*").*`), "$1 is neither true nor false; give the flag alone"},
	{regexp.MustCompile(`^expected bool but got ("[^"]*").*`), "$1 is neither true nor false; give the flag alone"},
	{regexp.MustCompile(`^(?:expected .*but got "[^"]*": )?parsing time ("[^"]*").*`), "$1 is not an instant"},
	{regexp.MustCompile(`^slog: level string ("[^"]*").*`), "$1 is not a level"},
}

// explainUsage returns what the parser says in the words of the help of the command.
func explainUsage(c *kong.Context, text string) string {
	if m := missingFlags.FindStringSubmatch(text); m != nil {
		return explainMissingFlags(c, m[1])
	}
	if missingCommand.MatchString(text) {
		return explainMissingCommand(c)
	}
	if m := missingArguments.FindStringSubmatch(text); m != nil {
		name := argumentNames.FindStringSubmatch(m[1])[1]
		return sentence(strings.ToUpper(name)+" is missing", helpOfArgument(c, name), exampleOf(c))
	}
	if m := notInEnum.FindStringSubmatch(text); m != nil {
		values := strings.Split(strings.ReplaceAll(m[2], `"`, ""), ",")
		return fmt.Sprintf(`%s: "%s" is not one of its values; give %s`, shownName(m[1]), m[3], alternatives(values))
	}
	if excluded.MatchString(text) {
		return text + "; leave one of them out"
	}
	if m := wrongValue.FindStringSubmatch(text); m != nil {
		return explainValue(c, m[1], m[2])
	}
	return text
}

// explainMissingFlags names the flags that are missing, with their help.
func explainMissingFlags(c *kong.Context, text string) string {
	var parts []string
	for one := range strings.SplitSeq(text, ", ") {
		var names []string
		help, example := "", ""
		for _, m := range flagNames.FindAllStringSubmatch(one, -1) {
			names = append(names, "--"+m[1])
			if f := flagNamed(c, m[1]); f != nil && help == "" {
				help, example = f.Help, exampleOfFlag(c, f)
			}
		}
		parts = append(parts, sentence(strings.Join(names, " or ")+" is missing", help, example))
	}
	return strings.Join(parts, ". ")
}

// explainMissingCommand says which commands there are below a command.
func explainMissingCommand(c *kong.Context) string {
	node := c.Selected()
	if node == nil {
		return "the command is missing; give one, as in paddock run jobs:nightly -- make"
	}
	var names []string
	for _, child := range node.Children {
		names = append(names, child.Name)
	}
	return "the command is missing; give " + alternatives(names) + ", as in " + node.FullPath() + " " + names[0]
}

// explainValue says what is wrong with the value of a flag or an argument.
func explainValue(c *kong.Context, name, wrong string) string {
	for _, v := range parserValues {
		if !v.pattern.MatchString(wrong) {
			continue
		}
		text := shownName(name) + ": " + v.pattern.ReplaceAllString(wrong, v.text)
		if f := flagNamed(c, strings.TrimPrefix(name, "--")); f != nil {
			return sentence(text, f.Help, exampleOfFlag(c, f))
		}
		return sentence(text, helpOfArgument(c, argumentNames.FindStringSubmatch(name)[1]), exampleOf(c))
	}
	return shownName(name) + ": " + wrong
}

// shownName returns the name of a flag, or of an argument as messages have it.
func shownName(name string) string {
	if m := argumentNames.FindStringSubmatch(name); m != nil {
		return strings.ToUpper(m[1])
	}
	return name
}

// sentence joins what is wrong with the first sentence of the help, and an example.
func sentence(wrong, help, example string) string {
	if first, _, _ := strings.Cut(help, ". "); first != "" {
		wrong += ". " + strings.TrimSuffix(first, ".")
	}
	if example != "" {
		wrong += ". For example: " + example
	}
	return wrong
}

// alternatives joins words: a, b or c.
func alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// helpOfArgument returns the help of an argument of the command.
func helpOfArgument(c *kong.Context, name string) string {
	if c.Selected() == nil {
		return ""
	}
	i := slices.IndexFunc(c.Selected().Positional, func(a *kong.Positional) bool { return a.Name == name })
	if i < 0 {
		return ""
	}
	return c.Selected().Positional[i].Help
}

// exampleOf returns the first example in the help of the command, or of the one above it.
func exampleOf(c *kong.Context) string {
	node := c.Selected()
	if node == nil {
		return ""
	}
	for _, line := range examples(node) {
		if strings.HasPrefix(line, node.FullPath()+" ") {
			return line
		}
	}
	example := node.FullPath()
	for _, a := range node.Positional {
		example += " " + strings.ToUpper(a.Name)
	}
	return example
}

// examples returns the lines of the examples in the help of the command, and of the one above it.
func examples(node *kong.Node) (lines []string) {
	for n := node; n != nil; n = n.Parent {
		for line := range strings.Lines(n.Detail) {
			if example, is := strings.CutPrefix(line, "    "); is && !uuids.MatchString(line) {
				lines = append(lines, strings.TrimSpace(example))
			}
		}
	}
	return lines
}

// exampleOfFlag returns the flag with a value: that of an example in the help of the command if one has it.
func exampleOfFlag(c *kong.Context, f *kong.Flag) string {
	if f.IsBool() {
		return "--" + f.Name
	}
	if node := c.Selected(); node != nil {
		flag := regexp.MustCompile(`--` + regexp.QuoteMeta(f.Name) + ` ("[^"]*"|'[^']*'|[^\s'"]+)`)
		for _, line := range examples(node) {
			if found := flag.FindString(line); found != "" {
				return found
			}
		}
	}
	value, target := cmp.Or(f.Default, f.FormatPlaceHolder()), f.Target.Type()
	switch {
	case f.Enum != "":
		value = f.EnumSlice()[0]
	case numberKind(target) != reflect.Invalid:
		value = cmp.Or(strings.TrimLeft(f.Default, "0"), "10")
	case target == reflect.TypeFor[time.Time]():
		value = "2026-01-02T03:12:00Z"
	case f.FormatPlaceHolder() == "DURATION":
		value = cmp.Or(f.Default, "30s")
	}
	return "--" + f.Name + " " + value
}
