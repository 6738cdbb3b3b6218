package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// replicas are addresses of one deployment, in a synctest bubble. Each answers with its function.
type replicas struct {
	*testing.T
	*client.Client

	mu    sync.Mutex
	hosts map[string]roundTripFunc
	sent  []sentRequest
}

// A sentRequest is a request that a replica got.
type sentRequest struct {
	host, path string
	at         time.Time
	body       struct {
		LeaseID   string `json:"lease_id"`
		Wait      int    `json:"wait_ms"`
		KeepPlace bool   `json:"keep_place"`
	}
	text string
}

// withReplicas runs a test with a client of the hosts a, b and so on, as many as there are answers.
func withReplicas(t *testing.T, test func(*replicas), answers ...roundTripFunc) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &replicas{T: t, hosts: map[string]roundTripFunc{}}
		var urls []string
		for i, answer := range answers {
			host := string(rune('a' + i))
			r.hosts[host] = answer
			urls = append(urls, "http://"+host)
		}
		r.Client = open(t, client.Options{BaseURL: strings.Join(urls, ", "), HTTP: &http.Client{Transport: roundTripFunc(r.send)}})
		test(r)
	})
}

func (r *replicas) send(req *http.Request) (*http.Response, error) {
	s := sentRequest{host: req.URL.Host, path: req.URL.Path, at: time.Now()}
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &s.body); err != nil {
			return nil, err
		}
		s.text = string(text)
	}
	r.mu.Lock()
	r.sent = append(r.sent, s)
	answer := r.hosts[s.host]
	r.mu.Unlock()
	return answer(req)
}

// set replaces the answers of a host.
func (r *replicas) set(host string, answer roundTripFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hosts[host] = answer
}

// take returns the requests since the last take.
func (r *replicas) take() []sentRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.sent = nil
	return sent
}

// wantHosts checks which hosts got the requests since the last take, in order.
func (r *replicas) wantHosts(want string) {
	r.Helper()
	got := ""
	for _, s := range r.take() {
		got += s.host
	}
	if got != want {
		r.Errorf("the requests went to %q, want %q", got, want)
	}
}

func (r *replicas) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

var errRefused = errors.New("connection refused")

func refuses(*http.Request) (*http.Response, error) { return nil, errRefused }

// freezes never answers.
func freezes(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

// breaksAfter breaks the connection after that time.
func breaksAfter(d time.Duration) roundTripFunc {
	return func(req *http.Request) (*http.Response, error) {
		select {
		case <-time.After(d):
			return nil, io.ErrUnexpectedEOF
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
}

var works = saying(http.StatusOK, "application/json", freeJSON)

func refusing(status int, code lock.Code) roundTripFunc {
	return saying(status, "application/problem+json", fmt.Sprintf(`{"code":%q,"detail":"So it is."}`, code))
}

func TestAFailureMovesToTheNextAddress(t *testing.T) {
	for what, failure := range map[string]roundTripFunc{
		"refused": refuses,
		"broken":  breaksAfter(time.Millisecond),
		"frozen":  freezes,
		"HTTP 502": func(r *http.Request) (*http.Response, error) {
			res := reply(r, http.StatusBadGateway, "text/html", "Bad Gateway")
			res.Header.Del("Paddock-Api")
			return res, nil
		},
		"HTTP 503": refusing(http.StatusServiceUnavailable, lock.ErrUnavailable),
		"HTTP 504": saying(http.StatusGatewayTimeout, "text/html", "Gateway Timeout"),
	} {
		t.Run(what, func(t *testing.T) {
			withReplicas(t, func(r *replicas) {
				r.must(read(r.Client, r.T))
				r.must(read(r.Client, r.T))
				r.wantHosts("abb")
			}, failure, works)
		})
	}
}

func TestAnAnswerDoesNotMoveToAnotherAddress(t *testing.T) {
	for what, answer := range map[string]roundTripFunc{
		"not found": saying(http.StatusNotFound, "text/html", "Not Found"),
		"a fault":   refusing(http.StatusInternalServerError, lock.ErrInternal),
		"overload":  refusing(http.StatusTooManyRequests, lock.ErrRateLimited),
		"a refusal": refusing(http.StatusForbidden, lock.ErrRoleMissing),
	} {
		t.Run(what, func(t *testing.T) {
			withReplicas(t, func(r *replicas) {
				if err := read(r.Client, r.T); err == nil {
					t.Error("the call succeeded")
				}
				r.wantHosts("a")
			}, answer, works)
		})
	}
}

// TestADeadAddressTakesItsShareOfTheDeadline has three addresses, of which two are frozen.
func TestADeadAddressTakesItsShareOfTheDeadline(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(r.Context(), 6*time.Second)
		defer cancel()
		_, err := r.Acquire(ctx, lock.Acquire{Locks: lock.One("jobs:nightly"), LeaseID: leaseID, Holder: "worker-1"})
		r.must(err)
		sent := r.take()
		if len(sent) != 3 {
			t.Fatalf("%d requests were sent, want 3", len(sent))
		}
		for i, want := range []time.Duration{0, time.Second, time.Second + 1250*time.Millisecond} {
			if at := sent[i].at.Sub(begun); at != want {
				t.Errorf("attempt %d was sent after %v, want %v", i, at, want)
			}
			if sent[i].body.LeaseID != leaseText {
				t.Errorf("attempt %d has the lease_id %s, want %s", i, sent[i].body.LeaseID, leaseText)
			}
		}
	}, freezes, freezes, saying(http.StatusCreated, "application/json", leaseJSON))
}

func TestAnErrorNamesEachAddress(t *testing.T) {
	for what, c := range map[string]struct {
		b    roundTripFunc
		want lock.Code
	}{
		"nothing was sent":      {refusing(http.StatusServiceUnavailable, lock.ErrUnavailable), lock.ErrUnavailable},
		"an answer may be lost": {saying(http.StatusGatewayTimeout, "text/html", "Gateway Timeout"), lock.ErrUnknownOutcome},
	} {
		t.Run(what, func(t *testing.T) {
			withReplicas(t, func(r *replicas) {
				_, err := acquire(r.Client, r.T)
				var e *lock.Error
				if !errors.As(err, &e) || e.Code != c.want {
					t.Fatalf("the error is %v, want %v", err, c.want)
				}
				r.wantHosts("ab")
				for _, part := range []string{"http://a: ", "http://b: "} {
					if !strings.Contains(e.Detail, part) {
						t.Errorf("the error does not name %s: %v", part, err)
					}
				}
			}, refusing(http.StatusServiceUnavailable, lock.ErrUnavailable), c.b)
		})
	}
}

func TestAFrozenAddressIsNamedAsSilent(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		ctx, cancel := context.WithTimeout(r.Context(), 4*time.Second)
		defer cancel()
		_, err := r.Lock(ctx, "jobs:nightly")
		if err == nil || !strings.Contains(err.Error(), "http://a: It gave no answer within 1s. http://b: ") {
			t.Errorf("the error is %v", err)
		}
	}, freezes, refuses)
}

// TestAProbeBringsTheFirstAddressBack fails the first probe, so that the second comes later.
func TestAProbeBringsTheFirstAddressBack(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		probes := func(during time.Duration) (at []time.Duration) {
			begun := time.Now()
			for time.Since(begun) < during {
				time.Sleep(time.Second)
				r.must(read(r.Client, r.T))
				synctest.Wait()
			}
			for _, s := range r.take() {
				if s.path == "/readyz" {
					at = append(at, s.at.Sub(begun))
				}
			}
			return at
		}
		r.must(read(r.Client, r.T))
		r.wantHosts("ab")
		first := probes(40 * time.Second)
		if len(first) != 1 || first[0] < 30*time.Second || first[0] > 37*time.Second {
			t.Fatalf("probes were sent after %v, want one after 30 to 36 s", first)
		}
		if early := probes(50*time.Second - (40*time.Second - first[0])); len(early) != 0 {
			t.Errorf("after a failed probe another was sent after %v, want a longer pause", early)
		}
		r.set("a", works)
		probes(30 * time.Second)
		r.must(read(r.Client, r.T))
		r.wantHosts("a")
	}, refuses, works)
}

func TestAChangeThatCannotBeRepeatedIsSentOnce(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		revoke := lock.Revoke{Name: "jobs:nightly", Token: 41, Reason: "maintenance"}
		if _, err := r.Revoke(r.Context(), revoke); !errors.Is(err, lock.ErrUnknownOutcome) {
			t.Errorf("the error is %v", err)
		}
		r.wantHosts("a")
		_, err := r.Revoke(r.Context(), revoke)
		r.must(err)
		r.wantHosts("b")
	}, breaksAfter(time.Millisecond), works)
}

func TestABatchIsSentAgainUnchanged(t *testing.T) {
	overloaded := func(req *http.Request) (*http.Response, error) {
		time.Sleep(time.Second)
		return refusing(http.StatusServiceUnavailable, lock.ErrUnavailable)(req)
	}
	withReplicas(t, func(r *replicas) {
		var all sync.WaitGroup
		for n := range 10 {
			all.Go(func() {
				err := r.Release(r.Context(), lock.Release{Locks: []string{fmt.Sprintf("jobs:%d", n)}, LeaseID: leaseID})
				if !errors.Is(err, lock.ErrUnavailable) {
					t.Errorf("the error is %v", err)
				}
			})
		}
		all.Wait()
		bodies := map[string][]string{}
		for _, s := range r.take() {
			bodies[s.host] = append(bodies[s.host], s.text)
		}
		for _, texts := range bodies {
			slices.Sort(texts)
		}
		if !slices.Equal(bodies["a"], bodies["b"]) || !strings.Contains(strings.Join(bodies["a"], ""), "items") {
			t.Errorf("the addresses got %v", bodies)
		}
	}, overloaded, overloaded)
}

// queues answers an acquire as if the lock was held until its wait is over.
func queues(req *http.Request) (*http.Response, error) {
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	var asked struct {
		Wait int  `json:"wait_ms"`
		Keep bool `json:"keep_place"`
	}
	if err := json.NewDecoder(body).Decode(&asked); err != nil {
		return nil, err
	}
	select {
	case <-time.After(time.Duration(asked.Wait) * time.Millisecond):
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	kept := 0
	if asked.Keep {
		kept = 10_000
	}
	return reply(req, http.StatusConflict, "application/problem+json",
		fmt.Sprintf(`{"code":"lock_held","detail":"It is held.","place_kept_ms":%d}`, kept)), nil
}

// waits returns where the requests went and their waits. It checks that they have one lease_id, and that the last one
// does not keep the place.
func (r *replicas) waits() (hosts string, waits []time.Duration) {
	r.Helper()
	sent := r.take()
	for i, s := range sent {
		hosts += s.host
		waits = append(waits, time.Duration(s.body.Wait)*time.Millisecond)
		if s.body.LeaseID != leaseText || i == len(sent)-1 && s.body.KeepPlace {
			r.Errorf("request %d of %d is %s", i, len(sent), s.text)
		}
	}
	return hosts, waits
}

// waitFor acquires the lock with that wait, in vain.
func (r *replicas) waitFor(wait time.Duration) {
	r.Helper()
	begun := time.Now()
	_, err := r.Acquire(r.Context(), lock.Acquire{Locks: lock.One("jobs:nightly"), LeaseID: leaseID, Holder: "worker-1", Wait: wait})
	if !errors.Is(err, lock.ErrHeld) {
		r.Fatalf("the error is %v, want %v", err, lock.ErrHeld)
	}
	if took := time.Since(begun); took < wait || took > wait+2*time.Second {
		r.Errorf("the call took %v, want %v", took, wait)
	}
}

func TestAWaitAtOneOfSeveralAddressesTakesShortRequests(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		r.waitFor(25 * time.Second)
		hosts, waits := r.waits()
		if hosts != "aaa" || !slices.Equal(waits, []time.Duration{10 * time.Second, 10 * time.Second, 5 * time.Second}) {
			t.Errorf("waited at %s for %v", hosts, waits)
		}
	}, queues, works)
}

func TestAWaitAtTheOnlyAddressTakesOneRequest(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		r.waitFor(50 * time.Second)
		if _, waits := r.waits(); !slices.Equal(waits, []time.Duration{50 * time.Second}) {
			t.Errorf("waited for %v", waits)
		}
	}, queues)
}

// TestAWaitGoesOnAtAnotherAddress freezes the first address, which is silent for its wait and two seconds.
func TestAWaitGoesOnAtAnotherAddress(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		r.waitFor(25 * time.Second)
		hosts, waits := r.waits()
		if hosts != "abb" || !slices.Equal(waits, []time.Duration{10 * time.Second, 10 * time.Second, 3 * time.Second}) {
			t.Errorf("waited at %s for %v", hosts, waits)
		}
	}, freezes, queues)
}

// TestACutWaitIsNoError has a proxy that cuts requests after 20 seconds.
func TestACutWaitIsNoError(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		r.waitFor(40 * time.Second)
		_, waits := r.waits()
		if want := []time.Duration{40 * time.Second, 16 * time.Second, 4 * time.Second}; !slices.Equal(waits, want) {
			t.Errorf("waited for %v, want %v", waits, want)
		}
		r.waitFor(30 * time.Second)
		if _, waits = r.waits(); !slices.Equal(waits, []time.Duration{16 * time.Second, 14 * time.Second}) {
			t.Errorf("after a cut, waited for %v", waits)
		}
	}, func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(req.Context(), 20*time.Second)
		defer cancel()
		res, err := queues(req.WithContext(ctx))
		if ctx.Err() != nil {
			return reply(req, http.StatusGatewayTimeout, "text/html", "Gateway Timeout"), nil
		}
		return res, err
	})
}

// TestAConnectionThatBreaksSoonIsAnError breaks connections in less than a second, as a service that crashes does.
func TestAConnectionThatBreaksSoonIsAnError(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		_, err := r.Acquire(r.Context(), lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "worker-1", Wait: 40 * time.Second})
		if !errors.Is(err, lock.ErrUnknownOutcome) {
			t.Errorf("the error is %v", err)
		}
		r.wantHosts("a")
	}, breaksAfter(time.Second-time.Millisecond))
}

func TestALongReadOfEventsGoesOnAtAnotherAddressAfterItsCursor(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		page, err := r.Events(r.Context(), paddock.EventQuery{Cursor: "40", Wait: 25 * time.Second})
		r.must(err)
		if page.Next != "42" {
			t.Errorf("the page is %+v", page)
		}
		r.wantHosts("ab")
	}, freezes, func(req *http.Request) (*http.Response, error) {
		if cursor := req.URL.Query().Get("cursor"); cursor != "40" {
			t.Errorf("asked for the events after %q, want 40", cursor)
		}
		return reply(req, http.StatusOK, "application/json", `{"events":[{"id":42,"kind":"granted","lock":"a"}],"next_cursor":"42"}`), nil
	})
}

func TestAStreamGoesOnAtAnotherAddressAfterItsCursor(t *testing.T) {
	stream := func(text string, then func(*http.Request) error, want string) roundTripFunc {
		return func(req *http.Request) (*http.Response, error) {
			if after := req.Header.Get("Last-Event-ID"); after != want {
				t.Errorf("%s was asked for the events after %q, want %q", req.URL.Host, after, want)
			}
			res := reply(req, http.StatusOK, "text/event-stream", "")
			res.Body = io.NopCloser(io.MultiReader(strings.NewReader(text), readerFunc(func() error { return then(req) })))
			return res, nil
		}
	}
	silent := func(req *http.Request) error {
		<-req.Context().Done()
		return context.Cause(req.Context())
	}
	breaks := func(*http.Request) error {
		time.Sleep(2 * time.Second)
		return io.ErrUnexpectedEOF
	}
	for what, broken := range map[string]func(*http.Request) error{"broken": breaks, "silent": silent} {
		t.Run(what, func(t *testing.T) {
			withReplicas(t, func(r *replicas) {
				s, err := r.Stream(r.Context(), paddock.EventQuery{Cursor: paddock.CursorNow})
				r.must(err)
				for _, want := range []string{"41", "42"} {
					page, err := s.Next()
					r.must(err)
					if page.Next != want {
						t.Errorf("the page is %+v, want the cursor %s", page, want)
					}
				}
				r.must(s.Close())
				if _, err := s.Next(); !errors.Is(err, lock.ErrUnavailable) {
					t.Errorf("after Close the error is %v", err)
				}
				r.wantHosts("ab")
			},
				stream("id: 41\nevent: sync\ndata: {}\n\nid: 42\nevent: gra", broken, ""),
				stream("id: 42\nevent: sync\ndata: {}\n\n", silent, "41"))
		})
	}
}

// TestAStreamThatNobodyReadsIsNotSilent: its program does something else for a minute, and the connection is well.
func TestAStreamThatNobodyReadsIsNotSilent(t *testing.T) {
	withReplicas(t, func(r *replicas) {
		s, err := r.Stream(r.Context(), paddock.EventQuery{Cursor: paddock.CursorNow})
		r.must(err)
		for _, want := range []string{"41", "42"} {
			time.Sleep(time.Minute)
			page, err := s.Next()
			r.must(err)
			if page.Next != want {
				t.Errorf("the page is %+v, want the cursor %s", page, want)
			}
		}
		r.must(s.Close())
		r.wantHosts("a")
	}, func(req *http.Request) (*http.Response, error) {
		well := readerFunc(func() error {
			if req.Context().Err() != nil {
				return context.Cause(req.Context())
			}
			return io.EOF
		})
		res := reply(req, http.StatusOK, "text/event-stream", "")
		res.Body = io.NopCloser(io.MultiReader(well, strings.NewReader("id: 41\nevent: sync\ndata: {}\n\n"),
			well, strings.NewReader("id: 42\nevent: sync\ndata: {}\n\n")))
		return res, nil
	}, works)
}

// A readerFunc is a reader without text that fails with the error of the function.
type readerFunc func() error

func (f readerFunc) Read([]byte) (int, error) { return 0, f() }

func TestNewRefusesAListOfAddresses(t *testing.T) {
	t.Parallel()
	for what, url := range map[string]string{
		"with an empty address": "http://a,,http://b",
		"that ends early":       "http://a,",
		"with one invalid":      "http://a,b",
		"with one twice":        "http://a,http://b, http://a/",
	} {
		if _, err := client.New(client.Options{BaseURL: url}); err == nil {
			t.Errorf("New accepted a list %s", what)
		}
	}
}
