package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// How long a call to the service may take.
const (
	attemptTimeout = 5 * time.Second  // of a call that is retried because its outcome matters
	callTimeout    = 15 * time.Second // of another call: longer than the service's own default timeout
)

// The serviceFlags say where the service is, and how to authenticate.
type serviceFlags struct {
	URL string `default:"http://127.0.0.1:8080" placeholder:"URL" variable:"PADDOCK_URL" help:"Base URL of the service, or unix:PATH of its socket. Several, separated by commas, are addresses of one deployment: a command that gets no answer at one goes on at the next."`
	callerFlags
}

// arguments returns the flags as arguments of another paddock. Together with callerFlags.environment they give it the
// same access.
func (f serviceFlags) arguments() []string {
	args := []string{"--url", f.URL}
	for flag, value := range map[string]string{"--key-file": f.KeyFile, "--ca": f.CA, "--cert": f.Cert,
		"--cert-key": f.CertKey} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	return args
}

// client returns a client of the service for calls that may wait, or a usage error, which repeats neither the URL,
// which may contain a password, nor the key. It sends nothing.
func (f serviceFlags) client() (*client.Client, error) {
	return f.clientWithTimeout(lock.MaxWait + callTimeout)
}

// clientWithTimeout returns a client whose calls are abandoned after that time. An abandoned call may still take
// effect; unlike the end of its context it does not give up a place in a queue.
func (f serviceFlags) clientWithTimeout(timeout time.Duration) (*client.Client, error) {
	options := client.Options{BaseURL: f.URL, HTTP: &http.Client{Timeout: timeout}}
	var err error
	if options.Key, err = f.key(); err != nil {
		return nil, err
	}
	if f.KeyFile != "" { // which may be replaced while the command runs
		options.Key, options.KeyFunc = "", func(context.Context) (string, error) { return f.key() }
	}
	if options.TLSFunc, err = f.configs(); err != nil {
		return nil, err
	}
	if traced := f.traceContext(); trace.SpanContextFromContext(traced).IsValid() {
		options.NoCoalesce = true // a request of several calls belongs to no trace
		options.Propagate = func(_ context.Context, header http.Header) {
			propagation.TraceContext{}.Inject(traced, propagation.HeaderCarrier(header))
		}
	}
	locks, err := client.New(options)
	if err != nil {
		return nil, usagef("--url: %w", err)
	}
	return locks, nil
}

// traceContext returns a context with the trace that this command belongs to: of TRACEPARENT and TRACESTATE in its
// environment, as build systems set them. What is malformed is ignored.
func (f callerFlags) traceContext() context.Context {
	carrier := propagation.MapCarrier{}
	for _, name := range []string{"traceparent", "tracestate"} {
		if f.env != nil {
			carrier[name], _ = f.env(strings.ToUpper(name))
		}
	}
	return propagation.TraceContext{}.Extract(context.Background(), carrier)
}

// The callerFlags say how to authenticate, and which servers to trust.
type callerFlags struct {
	KeyFile string `placeholder:"FILE" variable:"PADDOCK_KEY_FILE" help:"File that contains the API key and nothing else. It is read again when it changes. Without it, the key is the value of PADDOCK_KEY, if the service requires one. No flag takes a key, because other users of the machine can see arguments."`
	trustFlags

	env lookup
}

// AfterApply keeps env for key.
func (f *callerFlags) AfterApply(env lookup) error {
	f.env = env
	return nil
}

// environment returns the variables that give another paddock the same API key.
func (f callerFlags) environment() []string {
	if f.env == nil {
		return nil
	}
	key, _ := f.env("PADDOCK_KEY")
	return []string{"PADDOCK_KEY=" + key}
}

// maxKeyFile is the maximum size of a file that contains a key, in bytes.
const maxKeyFile = 4 << 10

// key returns the API key, empty for none.
func (f callerFlags) key() (string, error) {
	if f.KeyFile == "" {
		if f.env == nil {
			return "", nil
		}
		key, _ := f.env("PADDOCK_KEY")
		return checkAPIKey("PADDOCK_KEY", strings.TrimSpace(key))
	}
	if err := checkFileName("--key-file", f.KeyFile); err != nil {
		return "", err
	}
	text, err := readFile(f.KeyFile, maxKeyFile)
	if err != nil {
		return "", usagef("--key-file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", usagef("--key-file: %s is empty; it must contain the key that paddock key new printed", f.KeyFile)
	}
	return checkAPIKey("--key-file: "+f.KeyFile, key)
}

// checkAPIKey returns the key, or a usage error, which does not repeat it.
func checkAPIKey(source, key string) (string, error) {
	if _, ok := access.KeyID(key); key != "" && !ok {
		return "", usagef("%s does not contain an API key: a key begins with pk_, as paddock key new printed it, and "+
			"nothing may be beside it", source)
	}
	return key, nil
}

// likeAPIKey matches an argument that may be an API key, or most of one.
var likeAPIKey = regexp.MustCompile(`^\s*pk_[0-9A-Za-z]+_[0-9A-Za-z_-]{16,}\s*$`)

// checkFileName returns a usage error, which does not repeat the name, if a name of a file may be an API key.
func checkFileName(flag, name string) error {
	if likeAPIKey.MatchString(name) {
		return usagef("%s: that is an API key, not repeated here; other users of the machine could see it just now. "+
			"Give the name of a file; if it is one, begin it with ./", flag)
	}
	return nil
}

// readFile returns the contents of a file of at most maxSize bytes.
func readFile(path string, maxSize int64) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && int64(len(text)) > maxSize {
		err = fmt.Errorf("%s has more than %d bytes", path, maxSize)
	}
	return text, err
}

// maxCertificates is the maximum size of a file of certificates, in bytes.
const maxCertificates = 4 << 20

// The trustFlags say which servers to trust over TLS, and which certificate to present to them.
type trustFlags struct {
	CA      string `name:"ca" placeholder:"FILE" variable:"PADDOCK_CA" help:"PEM certificates of the authorities to trust, instead of those of the system. Read again when they change."`
	Cert    string `placeholder:"FILE" variable:"PADDOCK_CERT" help:"PEM certificate, with its chain, to present to a service that requires one. Read again when it changes."`
	CertKey string `placeholder:"FILE" variable:"PADDOCK_CERT_KEY" help:"PEM private key of --cert."`
}

// configs returns a function that returns the TLS configuration of the files as they are then, which may be replaced
// while the command runs. It is nil without flags, or there is a usage error.
func (f trustFlags) configs() (func() (*tls.Config, error), error) {
	seen := f.stat()
	config, err := f.config()
	if config == nil || err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return func() (*tls.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		now := f.stat()
		if slices.EqualFunc(seen, now, isSameFile) {
			return config, nil
		}
		changed, err := f.config()
		if err != nil {
			return nil, err
		}
		seen, config = now, changed
		return config, nil
	}, nil
}

// stat returns what tells the files of the flags from others: nil for a file that is not there.
func (f trustFlags) stat() []os.FileInfo {
	var files []os.FileInfo
	for _, path := range []string{f.CA, f.Cert, f.CertKey} {
		info, err := os.Stat(path) // follows links
		if err != nil {
			info = nil // config says why
		}
		files = append(files, info)
	}
	return files
}

func isSameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// config returns the TLS configuration, nil without flags, or a usage error.
func (f trustFlags) config() (*tls.Config, error) {
	if f == (trustFlags{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		text, err := readFile(f.CA, maxCertificates)
		if err == nil {
			config.RootCAs, err = parsePool(f.CA, text)
		}
		if err != nil {
			return nil, usagef("--ca: %w", err)
		}
	}
	if f.Cert == "" && f.CertKey == "" {
		return config, nil
	}
	if f.Cert == "" || f.CertKey == "" {
		return nil, usagef("--cert and --cert-key must be given together")
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.CertKey)
	if err != nil {
		return nil, usagef("--cert, --cert-key: %w", err)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return config, nil
}

// parsePool returns the certificates in the text of a file.
func parsePool(path string, text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, usagef("%s contains no PEM certificate", path)
	}
	return pool, nil
}

// The retryFlags say how long an outage may last.
type retryFlags struct {
	Retry time.Duration `default:"10s" help:"How long to retry a call while the service is unreachable or overloaded, or the outcome is unknown; 0s to send it once."`
}

// limit returns the time limit for retry.
func (f retryFlags) limit() time.Duration { return max(f.Retry, time.Nanosecond) }

// forGuard returns the time limit for a guard, for which zero means its default.
func (f retryFlags) forGuard() time.Duration {
	if f.Retry == 0 {
		return -1
	}
	return f.Retry
}

// noLimit is the time limit of a retry without one.
const noLimit time.Duration = 0

// retry makes the call, and repeats it for as long as the limit allows while it fails with an error that may pass. It
// returns the last answer, also when ctx has ended.
func retry[T any](ctx context.Context, log *slog.Logger, limit time.Duration,
	call func(context.Context) (T, error)) (T, error) {
	var answer T
	var last error
	steps, level := newRetryBackOff(), slog.LevelWarn
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		answer, last = call(ctx)
		steps.atLeast = 0
		if e := (*lock.Error)(nil); errors.As(last, &e) && mayPass(last) {
			steps.atLeast = e.RetryAfter
			return struct{}{}, last
		}
		return struct{}{}, backoff.Permanent(last)
	}, backoff.WithBackOff(steps), backoff.WithMaxElapsedTime(limit),
		backoff.WithNotify(func(err error, next time.Duration) {
			log.Log(ctx, level, callFailed, "error", err, "retry_in", next)
			level = slog.LevelDebug
		}))
	if err != nil {
		return answer, last
	}
	return answer, nil
}

// read makes a call that only reads, and repeats it as the flag says. Its error is for people.
func read[T any](ctx context.Context, p *program, f retryFlags, call func(context.Context) (T, error)) (T, error) {
	found, err := retry(ctx, p.log, f.limit(), call)
	return found, explainUnlessStopped(ctx, err)
}

const callFailed = "call failed; retrying"

// logRetries returns a function that logs a failed call that is retried: the first at warn level, later ones at debug
// level.
func (p *program) logRetries() func(error) {
	level := slog.LevelWarn
	return func(err error) {
		p.log.Log(context.Background(), level, callFailed, "error", err)
		level = slog.LevelDebug
	}
}

// mayPass reports whether the same call may succeed later.
func mayPass(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) ||
		errors.Is(err, lock.ErrTooManyWaiters) || errors.Is(err, lock.ErrRateLimited)
}

// A retryBackOff grows exponentially, and is at least as long as the service asks for.
type retryBackOff struct {
	*backoff.ExponentialBackOff
	atLeast time.Duration
}

func newRetryBackOff() *retryBackOff {
	b := &retryBackOff{ExponentialBackOff: backoff.NewExponentialBackOff()}
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, 2*time.Second
	return b
}

// NextBackOff returns the time until the next call.
func (b *retryBackOff) NextBackOff() time.Duration {
	return max(b.ExponentialBackOff.NextBackOff(), b.atLeast)
}
