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

// A caller is a connection of HTTP/1.1 that asks one thing after the other.
type caller struct {
	net.Conn
	in *bufio.Reader
}

func (e *exposed) caller() (*caller, error) {
	c, err := e.secure("http/1.1")
	if err != nil {
		return nil, err
	}
	return &caller{c, bufio.NewReaderSize(c, 1<<10)}, nil
}

// request returns the text of a request. One without a body is one that asks to look.
func (e *exposed) request(method, path, key, body string) string {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", method, path, e.address, e.secrets[key])
	if body != "" {
		text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return text + "\r\n" + body
}

// say sends the text of a request.
func (c *caller) say(text string) error {
	_, err := io.WriteString(c, text)
	return err
}

// hear returns the next answer.
func (c *caller) hear() (answer, error) {
	got, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, text}, err
}

// ask sends a request and returns the answer.
func (c *caller) ask(text string) (answer, error) {
	if err := c.say(text); err != nil {
		return answer{}, err
	}
	return c.hear()
}

// An answer is one that was read.
type answer struct {
	status int // zero over HTTP/2, whose headers we do not read
	text   []byte
}

// A told is what answers say that is looked at here.
type told struct {
	Code   lock.Code `json:"code"`
	Detail string    `json:"detail"`
	Token  int64     `json:"fencing_token"`
}

// told returns what the answer says. One without a body says nothing.
func (a answer) told() (t told, err error) {
	if len(a.text) > 0 {
		err = json.Unmarshal(a.text, &t)
	}
	return t, err
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.text) }
