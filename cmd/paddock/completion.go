package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/lock"
)

//go:embed completion
var completionScripts embed.FS

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCommand) Help() string {
	return `Prints a script for the shell, which completes commands, flags and their values. It completes names of locks, too,
and sessions, freezes, rules and trees: it asks the service at PADDOCK_URL, or --url, and waits for a second at most, or as
long as PADDOCK_COMPLETION_TIMEOUT says. The packages for Debian and RPM install the scripts.

In ~/.bashrc:

    eval "$(paddock completion bash)"

In ~/.zshrc, after compinit:

    eval "$(paddock completion zsh)"

For fish:

    paddock completion fish > ~/.config/fish/completions/paddock.fish`
}

// Run prints the script.
func (c *completionCommand) Run(p *program) error {
	script, err := completionScripts.ReadFile("completion/paddock." + c.Shell)
	if err != nil {
		return err
	}
	_, err = p.stdout.Write(script)
	return err
}

// A completeCommand prints how the last of the words is completed, for the scripts. The first line is one of:
//
//	none       with the lines that follow, each a value, a tab and a text for people
//	files      the shell completes the name of a file
//	dirs       the shell completes the name of a directory
//	command N  the words from the Nth on, counted from zero, are a command of their own
type completeCommand struct {
	Words   []string      `arg:"" optional:"" passthrough:""`
	Timeout time.Duration `default:"1s" variable:"PADDOCK_COMPLETION_TIMEOUT" help:"How long to wait for names from the service."`
}

// Run prints the completions. An error of the service is not reported, because it would disturb the command line: there
// are no completions then.
func (c *completeCommand) Run(ctx context.Context, p *program) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	var line commandLine
	parser, err := newParser(&line, &sources{env: p.env}, io.Discard)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	w := completionOf(parser.Model, words)
	how, found := w.complete(ctx, p.env)
	text := how + "\n"
	for _, f := range found {
		if strings.HasPrefix(f.value, w.current) {
			text += printable.Text(w.before+f.value) + "\t" + printable.Text(f.help) + "\n"
		}
	}
	_, err = io.WriteString(p.stdout, text)
	return err
}

// A word is the last word of a command line, which is to be completed, and where it stands.
type word struct {
	node    *kong.Node  // the command that it belongs to
	value   *kong.Value // the flag or the argument whose value it is; nil: a command or a flag
	flag    bool        // it is a flag
	command int         // where the command that paddock runs begins, if the word belongs to it; else -1
	before  string      // the part of it that stays
	current string      // the part to complete
	service []string    // the flags before it that say where the service is
	words   []string    // those before it
}

// completionOf reads a command line as far as its last word.
func completionOf(model *kong.Application, words []string) word {
	w := word{node: model.Node, command: -1, current: words[len(words)-1], words: words[:len(words)-1]}
	var pending *kong.Flag // its value comes next
	arguments, onlyArguments := 0, false
	for i, text := range w.words {
		argument := w.argument(arguments)
		switch {
		case pending != nil:
			w.given(pending, text)
			pending = nil
		case text == "--" && w.passthrough() != nil:
			w.command = i + 1
			return w
		case text == "--":
			onlyArguments = true
		case !onlyArguments && strings.HasPrefix(text, "-") && len(text) > 1:
			name, value, given := strings.Cut(text, "=")
			flag := w.find(name)
			if flag != nil && given {
				w.given(flag, value)
			} else if flag != nil && !flag.IsBool() {
				pending = flag
			}
		case argument == nil:
			if !w.enter(text) {
				w.value = &kong.Value{Tag: &kong.Tag{}} // nothing is known of what comes after it
				return w
			}
		case argument.Passthrough:
			w.command = i
			return w
		default:
			arguments++
		}
	}
	w.value = w.argument(arguments)
	name, value, given := strings.Cut(w.current, "=")
	switch {
	case pending != nil:
		w.value = pending.Value
	case onlyArguments || !strings.HasPrefix(w.current, "-"):
		if w.value != nil && w.value.Passthrough {
			w.command = len(w.words)
		}
	case given && w.find(name) != nil:
		w.value, w.before, w.current = w.find(name).Value, name+"=", value
	default:
		w.value, w.flag = nil, true
	}
	return w
}

// enter goes on with the subcommand of that name. It reports whether there is one.
func (w *word) enter(name string) bool {
	i := slices.IndexFunc(w.node.Children, func(n *kong.Node) bool { return n.Name == name })
	if i >= 0 {
		w.node = w.node.Children[i]
	}
	return i >= 0
}

// argument returns the nth positional argument of the command, or nil.
func (w *word) argument(n int) *kong.Value {
	all := w.node.Positional
	if len(all) == 0 {
		return nil
	}
	if last := all[len(all)-1]; n >= len(all) && last.IsCumulative() {
		return last
	} else if n >= len(all) {
		return &kong.Value{Tag: &kong.Tag{}}
	}
	return all[n]
}

// passthrough returns the argument that is a command of its own, or nil.
func (w *word) passthrough() *kong.Value {
	if all := w.node.Positional; len(all) > 0 && all[len(all)-1].Passthrough {
		return all[len(all)-1]
	}
	return nil
}

// find returns the flag that is written as --name or -n, or nil.
func (w *word) find(name string) *kong.Flag {
	for _, group := range w.node.AllFlags(true) {
		for _, flag := range group {
			if name == "--"+flag.Name || flag.Short != 0 && name == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

// given keeps the value of a flag that says where the service is.
func (w *word) given(flag *kong.Flag, value string) {
	if slices.Contains([]string{"url", "key-file", "ca", "cert", "cert-key"}, flag.Name) {
		w.service = append(w.service, "--"+flag.Name+"="+value)
	}
}

// A completion is a value that the word may have.
type completion struct{ value, help string }

// complete returns how the word is completed, and with what if the shell does not know.
func (w *word) complete(ctx context.Context, env lookup) (how string, _ []completion) {
	switch {
	case w.command >= 0:
		return fmt.Sprintf("command %d", w.command), nil
	case w.flag:
		return "none", w.flags()
	case w.value == nil:
		return "none", commands(w.node)
	case w.value.Enum != "":
		return "none", values(w.value.EnumSlice())
	}
	kind := w.value.Tag.Get("complete")
	if w.value.Flag != nil && w.value.IsSlice() && kind != "lock" { // values with commas between them
		i := strings.LastIndex(w.current, ",") + 1
		w.before, w.current = w.before+w.current[:i], w.current[i:]
	}
	placeholder := ""
	if w.value.Flag != nil {
		placeholder = w.value.Flag.PlaceHolder
	}
	switch {
	case placeholder == "FILE":
		return "files", nil
	case placeholder == "DIR" || kind == "dir":
		return "dirs", nil
	case kind == "command":
		sub := &word{node: w.root()}
		for _, name := range w.words[1:] {
			if !sub.enter(name) {
				return "none", nil
			}
		}
		return "none", commands(sub.node)
	case kind == "kind":
		return "none", values(strings.Split(lock.KindNames(), ", "))
	case strings.Contains(kind, ","):
		return "none", values(strings.Split(kind, ","))
	case kind != "":
		return "none", w.ask(ctx, env, kind)
	}
	return "none", nil
}

func (w *word) root() *kong.Node {
	n := w.node
	for n.Parent != nil {
		n = n.Parent
	}
	return n
}

// flags returns the flags of the command, and of those above it.
func (w *word) flags() (found []completion) {
	for _, group := range w.node.AllFlags(true) {
		for _, flag := range group {
			help, _, _ := strings.Cut(flag.Help, ". ")
			found = append(found, completion{"--" + flag.Name, strings.TrimSuffix(help, ".")})
		}
	}
	return found
}

func commands(n *kong.Node) (found []completion) {
	for _, child := range n.Children {
		if !child.Hidden {
			found = append(found, completion{child.Name, strings.TrimSuffix(child.Help, ".")})
		}
	}
	return found
}

func values(texts []string) (found []completion) {
	for _, text := range texts {
		found = append(found, completion{value: text})
	}
	return found
}

// ask returns names of that kind from the service, or none if it does not answer in time.
func (w *word) ask(ctx context.Context, env lookup, kind string) []completion {
	var line commandLine
	if _, err := parse(&line, append([]string{"list"}, w.service...), &sources{env: env}, io.Discard); err != nil {
		return nil
	}
	service, err := line.List.clientWithTimeout(callTimeout)
	if err != nil {
		return nil
	}
	found, err := namesOfKind(ctx, service, kind, w.current)
	if err != nil {
		return nil
	}
	return found
}

// namesOfKind returns the names of that kind that begin with the prefix, and a few others.
func namesOfKind(ctx context.Context, service *client.Client, kind, prefix string) (found []completion, err error) {
	switch kind {
	case "lock", "scope":
		page, err := service.Locks(ctx, paddock.LockQuery{Prefix: prefix, Limit: paddock.MaxLimit})
		for _, l := range page.Items {
			found = append(found, completion{l.Name, string(l.State)})
		}
		if kind == "scope" {
			found = levelOf(found, prefix)
		}
		return found, err
	case "session":
		page, err := service.Sessions(ctx, paddock.SessionQuery{Limit: paddock.MaxLimit})
		for _, s := range page.Items {
			found = append(found, completion{s.Ref.String(), s.Holder})
		}
		return found, err
	case "freeze":
		freezes, err := service.Freezes(ctx)
		for _, f := range freezes {
			found = append(found, completion{string(f.Scope), f.Reason})
		}
		return found, err
	case "rule":
		rules, err := service.Rules(ctx)
		for _, r := range rules {
			found = append(found, completion{value: string(r.Scope)})
		}
		return found, err
	case "tree":
		trees, err := service.Trees(ctx)
		for _, t := range trees {
			found = append(found, completion{value: t.Root})
		}
		return found, err
	}
	return nil, fmt.Errorf("there are no names of the kind %s", kind)
}

// levelOf returns the names as far as their next colon after the prefix, as a shell completes the path of a file.
func levelOf(names []completion, prefix string) (found []completion) {
	for _, n := range names {
		if i := strings.Index(n.value[len(prefix):], ":"); i >= 0 {
			n = completion{n.value[:len(prefix)+i+1], "all below it"}
		}
		found = append(found, n)
	}
	return slices.Compact(found)
}
