package result

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// A Machine describes the machine and the versions. Unknown fields are empty.
type Machine struct {
	At       time.Time `json:"at"`
	CPU      string    `json:"cpu"`
	Cores    int       `json:"cores"`
	Memory   string    `json:"memory"`
	Kernel   string    `json:"kernel"`
	System   string    `json:"system"`
	Go       string    `json:"go"`
	Postgres string    `json:"postgres"`
	Paddock  string    `json:"paddock"` // the commit
}

// ThisMachine describes the machine that the bench runs on.
func ThisMachine(ctx context.Context) Machine {
	return Machine{
		At: time.Now().UTC().Truncate(time.Second), Cores: runtime.NumCPU(), Go: runtime.Version(),
		CPU:      find("/proc/cpuinfo", `model name\s*: (.+)`),
		Memory:   gigabytes(find("/proc/meminfo", `MemTotal:\s*(\d+) kB`)),
		Kernel:   find("/proc/sys/kernel/osrelease", `(.+)`),
		System:   find("/etc/os-release", `PRETTY_NAME="(.+)"`),
		Postgres: output(ctx, "postgres", "--version"),
		Paddock:  output(ctx, "git", "describe", "--tags", "--always", "--dirty"),
	}
}

// find returns the first group of the pattern's match in a file, empty if there is none.
func find(path, pattern string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	if match := regexp.MustCompile(pattern).FindSubmatch(text); match != nil {
		return string(match[1])
	}
	return ""
}

// gigabytes formats a number of kB in GB.
func gigabytes(text string) string {
	kB, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(kB/1e6, 'f', 0, 64) + " GB"
}

// output returns the output of a program, empty if it fails.
func output(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
