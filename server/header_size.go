package server

import "net/http"

// fieldOverhead is what a field of HTTP/2 counts for beside its name and value, in bytes (RFC 9113, section 6.5.2).
const fieldOverhead = 32

// withHeaderLimit refuses a request whose header has more than maxHeaderSize bytes. net/http refuses only what is some
// kilobytes longer, by itself, so that memory is bounded while a header arrives.
func (s *Server) withHeaderLimit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if headerSize(r) > maxHeaderSize {
			s.refuse(w, r, ErrHeaderTooLarge)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// headerSize returns how many bytes the header of r has: in HTTP/1, the request line, the fields and the empty line
// after them, without optional white space and Transfer-Encoding; in HTTP/2, the size of the header list.
func headerSize(r *http.Request) int {
	size, perField := len(r.Method)+len("  HTTP/1.1\r\n")+len(r.RequestURI)+len("Host: \r\n")+len(r.Host)+len("\r\n"), len(": \r\n")
	if r.ProtoMajor == 2 {
		perField = fieldOverhead
		size = len(":method:scheme:path:authority") + 4*perField + len(r.Method) + len("https") + len(r.RequestURI) + len(r.Host)
	}
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + perField
		}
	}
	return size
}
