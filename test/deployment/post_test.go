package deployment_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/lock"
)

// A postRequest is an acquire that waits, sent by a plain HTTP client, and its answer.
type postRequest struct {
	*fixture
	lock.Acquire
	done   chan struct{} // closed when it was answered
	status int
	header http.Header
	body   []byte
	err    error
}

// startPost sends an acquire to the replica that waits for as long as a call can.
func (s *fixture) startPost(via replica, holder string) *postRequest {
	p := &postRequest{fixture: s, Acquire: s.complete(lock.Acquire{Holder: holder}), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.err = p.send(via)
	}()
	s.Cleanup(func() { <-p.done })
	return p
}

func (p *postRequest) send(via replica) error {
	r, err := p.request(via)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	p.status, p.header = res.StatusCode, res.Header
	p.body, err = io.ReadAll(res.Body)
	return errors.Join(err, res.Body.Close())
}

// request returns the acquire as an HTTP request.
func (p *postRequest) request(via replica) (*http.Request, error) {
	body := bytes.NewReader(acquireBody(p.Acquire))
	r, err := http.NewRequestWithContext(p.Context(), http.MethodPost, via.base+"/v1/locks/"+p.Name+"/acquire", body)
	if err == nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, err
}

// acquireBody returns the body of an acquire that waits for as long as a call can.
func acquireBody(a lock.Acquire) []byte {
	body, err := json.Marshal(map[string]any{
		"lease_id": uuid.UUID(a.LeaseID), "holder": a.Holder, "ttl_ms": a.TTL.Milliseconds(),
		"wait_ms": lock.MaxWait.Milliseconds(),
	})
	if err != nil {
		panic(err) // There is nothing in it that is not JSON.
	}
	return body
}

// expectAnswer waits for the answer, checks its status and decodes its body.
func (p *postRequest) expectAnswer(status int, body any) {
	p.Helper()
	select {
	case <-p.done:
	case <-time.After(proctest.Patience):
		p.Fatalf("the call of %s was not answered", p.Holder)
	}
	if p.err != nil || p.status != status {
		p.Fatalf("%s was answered %d, %v, want %d:\n%s", p.Holder, p.status, p.err, status, p.body)
	}
	p.must(json.Unmarshal(p.body, body))
}

// expectRefusal waits for the answer, which must be a problem with that code.
func (p *postRequest) expectRefusal(code lock.Code, status int) {
	p.Helper()
	var problem struct{ Code lock.Code }
	if p.expectAnswer(status, &problem); problem.Code != code {
		p.Fatalf("%s was refused with %s, want %s", p.Holder, problem.Code, code)
	}
}
