package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// patience is the greatest time to answer that is shared out among the addresses, if the call has a longer deadline
	// or none. The wait of a call is not part of it.
	patience = 15 * time.Second
	// minShare is the least time that an address has to answer.
	minShare = 250 * time.Millisecond
	// silence is how long after its wait a call may be answered.
	silence = 2 * time.Second

	probeTimeout  = time.Second
	minProbePause = 30 * time.Second
	maxProbePause = 5 * time.Minute
)

// An address is the base URL of a replica, or of a proxy in front of several.
type address struct {
	text string // as the options have it, for errors
	base string // without a slash at the end
	http *http.Client
}

// addresses are those of one deployment, in the order of preference. Calls go to the current one. A failure makes the
// next one current; a probe brings an earlier one back.
type addresses struct {
	list []address

	mu      sync.Mutex
	current int
	probing bool
	probeAt time.Time // of the next probe, while current is not the first
	pause   time.Duration
}

// newAddresses returns the addresses of the options, which are separated by commas.
func newAddresses(o Options) (*addresses, error) {
	a, shared := &addresses{}, httpClient(o)
	var seen []string
	texts := strings.Split(o.BaseURL, ",")
	for i, text := range texts {
		text = strings.Trim(text, " ")
		if err := checkBaseURL(text); err != nil {
			if len(texts) > 1 {
				return nil, fmt.Errorf("client: base URL %d of %d %w", i+1, len(texts), err)
			}
			return nil, fmt.Errorf("client: the base URL %w", err)
		}
		one := address{text: text, base: strings.TrimSuffix(text, "/"), http: shared}
		if before := slices.Index(seen, one.base); before >= 0 {
			return nil, fmt.Errorf("client: base URLs %d and %d are the same; give each replica's address once", before+1, i+1)
		}
		seen = append(seen, one.base)
		if path := socketOf(text); path != "" {
			if o.HTTP != nil && o.HTTP.Transport != nil {
				return nil, errors.New("client: BaseURL is a socket and HTTP.Transport is set; dial in the Transport")
			}
			own := *shared
			own.Transport = socketTransport(path)
			one.base, one.http = "http://localhost", &own
		}
		a.list = append(a.list, one)
	}
	return a, nil
}

// several reports whether there is an address to move to.
func (a *addresses) several() bool { return len(a.list) > 1 }

// failed makes the next address current, unless another call has done so.
func (a *addresses) failed(i int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i != a.current || !a.several() {
		return
	}
	if a.current == 0 {
		a.scheduleProbe(minProbePause)
	}
	a.current = (i + 1) % len(a.list)
}

// scheduleProbe sets the time of the next probe. The caller holds mu.
func (a *addresses) scheduleProbe(pause time.Duration) {
	a.pause = pause
	a.probeAt = time.Now().Add(pause + rand.N(pause/5))
}

// probe asks the earlier addresses whether they are ready, beside the call, if that is due. The first that is becomes
// current. The caller holds mu.
func (a *addresses) probe() {
	if a.current == 0 || a.probing || time.Now().Before(a.probeAt) {
		return
	}
	a.probing = true
	go a.askEarlier(a.list[:a.current])
}

func (a *addresses) askEarlier(earlier []address) {
	ready := slices.IndexFunc(earlier, address.isReady)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probing = false
	if ready >= 0 && ready < a.current {
		a.current = ready
		a.scheduleProbe(minProbePause) // of those before it
	} else {
		a.scheduleProbe(min(2*a.pause, maxProbePause))
	}
}

func (a address) isReady() bool {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/readyz", nil)
	if err != nil {
		return false
	}
	req.Header.Set("User-Agent", userAgent)
	res, err := a.http.Do(req)
	if err != nil {
		return false
	}
	_, err = read(res, maxResponse)
	return err == nil && res.StatusCode == http.StatusOK && isPaddock(res)
}

// A round is the attempts of one call: it goes to each address once at most, the current one first.
type round struct {
	*addresses
	first, tried int
	failures     []error // *lock.Error, of the first tried ones
}

func (a *addresses) round() *round {
	if !a.several() {
		return &round{addresses: a}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.probe()
	return &round{addresses: a, first: a.current}
}

// index returns that of the address to try.
func (r *round) index() int { return (r.first + r.tried) % len(r.list) }

// address returns the address to try.
func (r *round) address() address { return r.list[r.index()] }

// isLast reports whether no address is left after the one to try.
func (r *round) isLast() bool { return r.tried == len(r.list)-1 }

// share returns how long the address to try may take to answer before it counts as silent, of the time that is left.
func (r *round) share(left time.Duration) time.Duration {
	return max(left/time.Duration(2*(len(r.list)-r.tried)), minShare)
}

// fail notes that the address did not answer. It reports whether another one is left to try.
func (r *round) fail(err error) bool {
	if !r.several() {
		return false
	}
	r.failed(r.index())
	r.failures = append(r.failures, err)
	r.tried++
	return r.tried < len(r.list)
}

// err returns the error of a call that no address has answered. It names each address and its error.
func (r *round) err() error {
	e, what := &lock.Error{Code: lock.ErrUnavailable}, "No address of the service has answered. "
	var causes []error
	for i, failure := range r.failures {
		at := r.list[(r.first+i)%len(r.list)].text
		var f *lock.Error
		if !errors.As(failure, &f) {
			f = &lock.Error{Code: lock.ErrUnavailable, Detail: failure.Error()}
		}
		if f.Code != lock.ErrUnavailable {
			e.Code = lock.ErrUnknownOutcome
		}
		e.RetryAfter = f.RetryAfter
		detail := strings.TrimSpace(strings.TrimSuffix(strings.TrimSuffix(f.Detail, nothingDone), maybeDone))
		what += fmt.Sprintf("%s: %s ", at, detail)
		if f.Cause != nil {
			causes = append(causes, fmt.Errorf("%s: %w", at, f.Cause))
		}
	}
	e.Cause = errors.Join(causes...)
	if e.Code == lock.ErrUnavailable {
		e.Detail = what + nothingDone
	} else {
		e.Detail = what + maybeDone
	}
	return e
}

// A silentError is the end of an attempt that the address has not answered in its share of the time.
type silentError struct{ after time.Duration }

func (e silentError) Error() string {
	return fmt.Sprintf("no answer within %v", e.after.Round(time.Millisecond))
}

// moves reports whether an attempt failed such that another address may answer the same request: it could not connect,
// its connection broke, or a proxy or the service says that the service is not there. status is zero if no complete
// answer came.
func moves(status int, err error) bool {
	switch status {
	case 0:
		return err != nil && !errors.As(err, new(keyError))
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// socketOf returns the path of a socket from a URL such as unix:/run/paddock.sock, "" for other URLs.
func socketOf(baseURL string) string {
	path, _ := strings.CutPrefix(baseURL, "unix:")
	if path == baseURL {
		return ""
	}
	return path
}

func checkBaseURL(text string) error {
	if path := socketOf(text); path != "" {
		if !strings.HasPrefix(path, "/") {
			return errors.New("is a socket without an absolute path; give unix:/run/paddock.sock")
		}
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://, or be a socket such as unix:/run/paddock.sock")
	case u.Hostname() == "":
		return errors.New("has no host")
	case u.User != nil:
		return errors.New("must not contain a user or a password")
	case u.RawQuery != "" || u.ForceQuery:
		return errors.New("must not have a query")
	case u.Fragment != "":
		return errors.New("must not have a fragment")
	}
	return nil
}
