package faults_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/paddock-lock/paddock/lock"
)

// A httpConn is a connection of HTTP/1.1 that asks one thing after the other.
type httpConn struct {
	net.Conn
	in *bufio.Reader
}

func (e *securedReplica) httpConn() (*httpConn, error) {
	c, err := e.dialTLS("http/1.1")
	if err != nil {
		return nil, err
	}
	return &httpConn{c, bufio.NewReaderSize(c, 1<<10)}, nil
}

// request returns the text of a request. One without a body is one that asks to look.
func (e *securedReplica) request(method, path, key, body string) string {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", method, path, e.address, e.secrets[key])
	if body != "" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return text + "\r\n" + body
}

// send sends the text of a request.
func (c *httpConn) send(text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// receive returns the next answer.
func (c *httpConn) receive() (answer, error) {
	got, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, text}, err
}

// roundTrip sends a request and returns the answer.
func (c *httpConn) roundTrip(text string) (answer, error) {
	if err := c.send(text); err != nil {
		return answer{}, err
	}
	return c.receive()
}

// An answer is one that was read.
type answer struct {
	status int // zero over HTTP/2, whose headers we do not read
	text   []byte
}

// A fields is what answers say that is looked at here.
type fields struct {
	Code   lock.Code `json:"code"`
	Detail string    `json:"detail"`
	Token  int64     `json:"fencing_token"`
}

// fields returns what the answer says. One without a body says nothing.
func (a answer) fields() (t fields, err error) {
	if len(a.text) > 0 {
		err = json.Unmarshal(a.text, &t)
	}
	return t, err
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.text) }
