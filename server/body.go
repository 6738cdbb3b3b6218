package server

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"

	"github.com/paddock-lock/paddock/lock"
)

// jsonType is the media type of bodies.
const jsonType = "application/json"

// readBody reads the request's body, which must say that it is JSON, be whole, and have at
// most so many bytes, into the buffer. What it returns is good until that has another.
func readBody(into *bytes.Buffer, w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := checkMediaType(r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	into.Reset()
	_, err := into.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	switch {
	case err == nil:
		return into.Bytes(), nil
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, tooLarge("body", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, badBody("did not arrive within %v. Send it again", readTimeout)
	}
	return nil, badBody("broke off after %d bytes. Send it again", into.Len())
}

// checkMediaType allows parameters, such as a charset: JSON is UTF-8 whatever they say.
func checkMediaType(header string) error {
	if header == jsonType {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(header); err == nil && kind == jsonType {
		return nil
	}
	says := "has no Content-Type"
	if header != "" {
		says = fmt.Sprintf("says that it is %q", header)
	}
	return &lock.Error{Code: ErrUnsupportedMediaType, Detail: "The body " + says +
		". Send it as Content-Type: application/json; curl --json does."}
}

// tooLarge returns the refusal of what has more bytes than it may have.
func tooLarge(what string, limit int64) error {
	return &lock.Error{Code: ErrBodyTooLarge, Detail: fmt.Sprintf("The %s has more than %d bytes. Send less.", what, limit)}
}

// badBody returns the refusal of a body as a whole: what is wrong with it, said
// so that the sentence goes on from "The body", without a full stop.
func badBody(format string, args ...any) error {
	return &lock.Error{Code: lock.ErrInvalid, Detail: "The body " + fmt.Sprintf(format, args...) + "."}
}
