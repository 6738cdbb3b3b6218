package shell_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/test/internal/tools"
)

// zshTypes types lines into a shell with a terminal of its own, each with a tab at its end, and prints what becomes of them.
// The arguments are zsh or bash, the script, the folder of what was unpacked for zsh, or /, and the lines.
const zshTypes = `
[[ $3 = / ]] || module_path=($3/usr/lib/*/zsh/*(/))
zmodload zsh/zpty
if [[ $1 = zsh ]]; then
    zpty t zsh -f -i
    zpty -w t "PS1=; [[ ${(q)3} = / ]] || module_path=(${(q)module_path}) fpath=(${(q)3}/usr/share/zsh/functions/**/*(/))"
    zpty -w t "autoload -Uz compinit && compinit -u -D && . ${(q)2}"
    zpty -w t "show() { print -r -- \"<\$BUFFER>\"; BUFFER= }; zle -N show; bindkey '^X' show; LISTMAX=1000"
else
    zpty t bash --norc --noprofile -i
    zpty -w t "PS1=; . ${(q)2}"
    zpty -w t "show() { echo \"<\$READLINE_LINE>\"; READLINE_LINE= READLINE_POINT=0; }"
    zpty -w t "bind -r '\C-x'; bind -x '\"\C-x\": show'"
fi
zpty -w t "echo rea''dy"
zpty -r t said "*ready*"
for line in "${(@)argv[4,-1]}"; do
    zpty -n -w t "$line"$'\t\x18'
    zpty -r t said "*<*>*"
    print -r -- "${${said##*<}%%>*}"
done
zpty -d t
`

// TestShellsComplete runs the scripts in the shells. A line that only one word completes becomes the whole line.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	dir, server := t.TempDir(), serviceWithLocks(t, "jobs:nightly", "jobs:weekly")
	mustWrite(t, filepath.Join(dir, "secret.key"), "")
	lines := []struct{ line, whole string }{
		{"paddock rele", "paddock release"},
		{"paddock key rev", "paddock key revoke"},
		{"paddock get jobs:n", "paddock get jobs:nightly"},
		{"paddock acquire jobs:nightly jobs:w", "paddock acquire jobs:nightly jobs:weekly"},
		{"paddock run --wait 1m jobs:w", "paddock run --wait 1m jobs:weekly"},
		{"paddock run --lock=jobs:w", "paddock run --lock=jobs:weekly"},
		{"paddock get --outp", "paddock get --output"},
		{"paddock get -o js", "paddock get -o json"},
		{"paddock get --output=js", "paddock get --output=json"},
		{"paddock events --kind expired,que", "paddock events --kind expired,queued"},
		{"paddock get --url http://127.0.0.1:1 jobs:n", "paddock get --url http://127.0.0.1:1 jobs:n"},
		{"paddock list --key-file " + dir + "/sec", "paddock list --key-file " + dir + "/secret.key"},
		{"paddock list --key-file=" + dir + "/sec", "paddock list --key-file=" + dir + "/secret.key"},
		{"paddock run jobs:nightly -- paddock migrate do", "paddock run jobs:nightly -- paddock migrate down"},
	}
	env := append(os.Environ(), "PADDOCK_URL="+server, "PADDOCK_COMPLETION_TIMEOUT=1m", "HOME="+dir, "TERM=dumb",
		"PATH="+filepath.Dir(paddock.Path(t))+":"+tools.SearchPath(t, "zsh", "fish"))
	scriptFor := func(shell string) string {
		file := filepath.Join(dir, "paddock."+shell)
		mustWrite(t, file, output(t, "completion", shell))
		return file
	}

	zsh := tools.Path(t, "zsh")
	for _, name := range []string{"zsh", "bash"} {
		p, typed := shell(dir, env, `exec "$@"`), lines
		if name == "bash" {
			typed = lines[:len(lines)-1] // a command in the command needs the package bash-completion
		}
		p.Cmd.Args = append(p.Cmd.Args, "bash", "zsh", "-f", "-c", zshTypes, "zsh", name, scriptFor(name), unpacked(zsh))
		for _, l := range typed {
			p.Cmd.Args = append(p.Cmd.Args, l.line)
		}
		mustRun(t, p)
		said := strings.Split(p.Stdout.String(), "\n")
		for i, l := range typed {
			if i >= len(said) || strings.TrimRight(said[i], " ") != l.whole {
				t.Errorf("%s: %q is not %q in:\n%s%s", name, l.line, l.whole, p.Stdout, p.Stderr)
				break
			}
		}
	}

	file := scriptFor("fish")
	for _, l := range lines {
		fish := exec.Command("fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, file, l.line)
		fish.Path, fish.Env = tools.Path(t, "fish"), env
		said, err := fish.CombinedOutput()
		word := l.whole[strings.LastIndex(l.whole, " ")+1:]
		if l.whole == l.line {
			word = ""
		}
		if got, _, _ := strings.Cut(strings.TrimSuffix(string(said), "\n"), "\t"); err != nil || got != word {
			t.Errorf("fish: %q is completed by %q (%v), want %q", l.line, said, err, word)
		}
	}
}

// unpacked returns the folder into which the package of a program was unpacked, / for an installed one.
func unpacked(program string) string {
	root := filepath.Dir(filepath.Dir(program))
	if _, err := os.Stat(filepath.Join(root, "usr", "share")); err != nil {
		return "/"
	}
	return root
}

// serviceWithLocks starts a service in which the locks are held, and returns its base URL.
func serviceWithLocks(t *testing.T, names ...string) string {
	t.Helper()
	_, base := paddock.Serve(t, pgtest.URL(t))
	for _, name := range names {
		res, err := http.Post(fmt.Sprintf("%s/v1/locks/%s/acquire", base, name), "application/json", strings.NewReader(`{"holder":"me"}`))
		if err != nil || res.StatusCode != http.StatusCreated {
			t.Fatalf("%v, %v", res, err)
		}
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	return base
}

func mustWrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
