// Package exchange records the requests that tests send, and their answers. The tests in test/contract compare the
// recorded ones with openapi.yaml, with a library that Paddock itself does not need.
package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// An Exchange is a request and its answer, or one event of a stream.
type Exchange struct {
	Test     string // the name of the test
	Method   string
	URL      string
	Sent     http.Header
	Request  []byte
	Status   int
	Received http.Header
	Answer   []byte // empty for a stream
	// Event is the data of one event that a stream sent. Then all other fields but Test are zero.
	Event json.RawMessage `json:",omitempty"`
}

// Append adds the exchange to the end of a file, which it creates if necessary. Several processes may append to the
// same file.
func (x Exchange) Append(path string) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// Read calls visit with each exchange of a file, in the order in which they were appended.
func Read(path string, visit func(Exchange)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	for d := json.NewDecoder(file); ; {
		var x Exchange
		switch err := d.Decode(&x); {
		case errors.Is(err, io.EOF):
			return file.Close()
		case err != nil:
			return errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
		}
		visit(x)
	}
}
