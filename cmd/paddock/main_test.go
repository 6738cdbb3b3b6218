package main

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
)

// actAsPaddock, set in the environment, makes the test binary run main.
const actAsPaddock = "PADDOCK_TEST_ACT_AS_PADDOCK"

func TestMain(m *testing.M) {
	if os.Getenv(actAsPaddock) != "" {
		main()
	}
	unignoreSignals()
	pgtest.Main(m)
}

// unignoreSignals gives SIGHUP and SIGINT their default action in the processes that tests start, also if this process
// has inherited them as ignored, as under nohup. Tests that want them ignored ignore them.
func unignoreSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // an ignored signal is inherited, a handler is not
		}
	}
}

// call runs paddock in this process, with no environment but env.
func call(t *testing.T, env map[string]string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	var out, err bytes.Buffer
	code = run(ctx, args, variablesOf(env), &out, &err)
	return code, out.String(), err.String()
}

func variablesOf(env map[string]string) lookup {
	return func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
}

// serveHere runs paddock serve in this process until the test ends, and returns its base URL. It checks that serve
// exits with zero.
func serveHere(t *testing.T, databaseURL string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	log := new(proctest.Transcript)
	ended := make(chan int, 1)
	go func() {
		args := append([]string{"serve", "--database-url", databaseURL, "--listen", "127.0.0.1:0"}, args...)
		env := map[string]string{"GOGC": "100"} // without it, tuneGC would clear 128 MiB for each service of this process
		ended <- run(ctx, args, variablesOf(env), log, log)
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != exitOK {
			t.Errorf("serve ended with %d:\n%s", code, log)
		}
	})
	return "http://" + log.Await(t, `"msg":"listening","address":"([^"]+)"`)
}
