package server

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// jsonType is the media type of bodies.
const jsonType = "application/json"

// readBody reads the request's body, which must be JSON by its Content-Type and have at most limit bytes, into the
// buffer. The result is valid until the buffer is used again.
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
		return nil, wire.TooLarge("body", limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, wire.InvalidBody("did not arrive within %v. Send it again", readTimeout)
	}
	return nil, wire.InvalidBody("broke off after %d bytes. Send it again", into.Len())
}

// rejectEncoded refuses a request whose body has a Content-Encoding other than identity: no handler decodes one.
func (s *Server) rejectEncoded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if encoded, ok := r.Header["Content-Encoding"]; ok && r.ContentLength != 0 && !isIdentity(encoded) {
			s.refuse(w, r, &lock.Error{Code: ErrUnsupportedMediaType, Detail: fmt.Sprintf(
				"The body has Content-Encoding %.40q, which is not supported. Send the body without Content-Encoding.", strings.Join(encoded, ", "))})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isIdentity reports whether the values of a Content-Encoding header name no encoding other than identity.
func isIdentity(values []string) bool {
	for coding := range strings.SplitSeq(strings.Join(values, ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return false
		}
	}
	return true
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
