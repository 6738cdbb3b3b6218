package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/internal/when"
)

type configCommand struct {
	serveFlags
	outputFlags
}

func (configCommand) Help() string {
	return `Takes the flags of serve, and connects to nothing. A flag wins over its variable, the variable over the file of
--config, and the file over the default. Passwords are not shown.

    paddock config --config /etc/paddock/paddock.toml
    paddock config -o json | jq '.[] | select(.source != "default")'`
}

// Run prints the settings.
func (c *configCommand) Run(p *program) error {
	return p.print(c.Output, showSettings(p.sources, p.command))
}

// A settingJSON is a setting as JSON shows it.
type settingJSON struct {
	Setting  string `json:"setting"`
	Value    any    `json:"value"`
	Source   string `json:"source"`
	Variable string `json:"variable,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// settingsIn returns the settings that the command has. Some are not flags of every command that serves.
func settingsIn(given *sources, c *kong.Context) (shown []settingJSON) {
	for _, f := range fileSettings(c.Model) {
		flag := flagNamed(c, f.Name)
		if flag == nil {
			continue
		}
		setting := settingJSON{Setting: f.Name, Value: shownValue(flag), Source: "default"}
		if s := given.applied(c, flag); s.kind == fromFlag {
			setting.Source = "flag"
		} else if s.kind == fromEnvironment {
			setting.Source, setting.Variable = "environment", s.variable
		} else if s.kind == fromFile {
			setting.Source, setting.File, setting.Line = "file", given.file.path, s.line
		}
		shown = append(shown, setting)
	}
	return shown
}

// servedSettings returns the settings of the command, as the service shows them to operators.
func servedSettings(given *sources, c *kong.Context) []paddock.Setting {
	var all []paddock.Setting
	for _, s := range settingsIn(given, c) {
		one := paddock.Setting{Name: s.Setting, Source: s.Source, Place: s.Variable}
		if s.Value != nil {
			one.Value = valueCell(s.Value)
		}
		if s.Source == "file" {
			one.Place = s.sourceCell()
		}
		all = append(all, one)
	}
	return all
}

func showSettings(given *sources, c *kong.Context) output {
	shown := settingsIn(given, c)
	names := namesIn(shown, func(s settingJSON) string { return s.Setting })
	return output{wire: shown, names: names, table: func(t *table) {
		t.head("SETTING", "VALUE", "SOURCE")
		for _, s := range shown {
			t.row(s.Setting, valueCell(s.Value), s.sourceCell())
		}
	}}
}

func (s settingJSON) sourceCell() string {
	switch s.Source {
	case "flag":
		return "--" + s.Setting
	case "environment":
		return s.Variable
	case "file":
		return fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	return s.Source
}

func valueCell(value any) string {
	switch v := value.(type) {
	case nil:
		return none
	case []string:
		return strings.Join(v, " ")
	}
	return fmt.Sprint(value)
}

// shownValue returns the value of a flag: nil for none, durations and other texts as text, and a URL without its
// password.
func shownValue(flag *kong.Flag) any {
	value := reflect.Indirect(flag.Target)
	if !value.IsValid() {
		return nil
	}
	switch v := value.Interface().(type) {
	case time.Duration:
		if v == 0 && flag.Tag.Has("unset") {
			return nil
		}
		return durationText(v)
	case []string:
		if len(v) == 0 {
			return nil
		}
		if flag.Name == cellFlagName {
			return shownCells(v)
		}
		return v
	}
	if value.Kind() == reflect.Bool || numberKind(value.Type()) != reflect.Invalid {
		return value.Interface()
	}
	text := fmt.Sprint(value.Interface())
	switch {
	case text == "":
		return nil
	case flag.Name == databaseURLFlag:
		return withoutPassword(text)
	case value.Type() == reflect.TypeFor[slog.Level]():
		return strings.ToLower(text)
	}
	return text
}

// shownCells returns the cells without their passwords.
func shownCells(given []string) []string {
	all := splitCells(given)
	for i, text := range all {
		if name, url, found := strings.Cut(text, "="); isURL(url) {
			all[i] = name + "=" + withoutPassword(url)
		} else if !found {
			all[i] = notShown
		}
	}
	return all
}

// durationText returns d as a flag gives it: 7d, 1m, 100ms.
func durationText(d time.Duration) string {
	if d > 0 && d%when.Day == 0 {
		return fmt.Sprintf("%dd", d/when.Day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// notShown stands in for a password, and for a URL in which there is no telling what is one.
const notShown = "xxxxx"

// withoutPassword returns the URL of a database without its passwords.
func withoutPassword(text string) string {
	if !hasPassword(text) {
		return text
	}
	u, err := url.Parse(text)
	if _, wrong := pgconnect.Parse(text); err != nil || wrong != nil || u.Scheme == "" {
		return notShown
	}
	parameters := strings.Split(u.RawQuery, "&")
	for i, p := range parameters {
		name, _, _ := strings.Cut(p, "=")
		if plain, err := url.QueryUnescape(name); err != nil || strings.Contains(plain, "password") {
			parameters[i] = name + "=" + notShown
		}
	}
	u.RawQuery = strings.Join(parameters, "&")
	return u.Redacted()
}

// hasPassword reports whether the URL of a database may have a password: it has none if it is well-formed, with a user
// alone before the host, and without a parameter of a password.
func hasPassword(text string) bool {
	u, err := url.Parse(text)
	if _, wrong := pgconnect.Parse(text); err != nil || wrong != nil || u.Scheme == "" {
		return true
	}
	_, set := u.User.Password()
	for name := range u.Query() {
		set = set || strings.Contains(name, "password")
	}
	return set
}
