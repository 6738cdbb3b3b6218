package web

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// renderRate is how many renderings of a page a second there are at most, and renderBurst how many at once after a rest:
	// a page fetches itself again when its stream is in sync, just after the browser has loaded it.
	renderRate, renderBurst = 1, 2
	// renderTimeout bounds a rendering, which may outlive the request that it was begun for.
	renderTimeout = 10 * time.Second
)

// together returns the answer of a page that many viewers look at: requests of one URL with one key that come at about
// the same time get one rendering, which begins after all of them have come. So each has what had happened before it,
// and a page that changes all the time costs no more than one rendering a second, however many look at it.
func together(answer func(*ui, http.ResponseWriter, *http.Request)) func(*ui, http.ResponseWriter, *http.Request) {
	return func(u *ui, w http.ResponseWriter, r *http.Request) {
		page := u.renderings.next(viewerOf(r), func() rendered { return u.render(answer, r) })
		maps.Copy(w.Header(), page.header)
		w.WriteHeader(page.status)
		if _, err := w.Write(page.body.Bytes()); err != nil {
			u.log.DebugContext(r.Context(), "cannot write page", slog.Any("error", err))
		}
	}
}

// viewerOf returns what the page of the request depends on, beside what it shows.
func viewerOf(r *http.Request) string {
	to := readerOf(r)
	return fmt.Sprintf("%t %s %s %t %x %s %q %q", r.TLS != nil, r.Host, r.URL.RequestURI(), to.SignedIn, to.key.Hash, to.Role(), to.Name(), to.Prefixes())
}

// render returns the answer to the request, which does not end with the request.
func (u *ui) render(answer func(*ui, http.ResponseWriter, *http.Request), r *http.Request) (page rendered) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), renderTimeout)
	defer cancel()
	page = newRendered()
	defer func() {
		if p := recover(); p != nil {
			u.log.ErrorContext(ctx, "page panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			page = newRendered()
			http.Error(&page, "Internal error: cannot render the page.", http.StatusInternalServerError)
		}
	}()
	answer(u, &page, r.WithContext(ctx))
	return page
}

// A rendered page is an answer that is sent to several clients.
type rendered struct {
	header http.Header
	status int
	body   *bytes.Buffer
}

func newRendered() rendered {
	return rendered{header: http.Header{}, status: http.StatusOK, body: &bytes.Buffer{}}
}

// Header returns the header.
func (p *rendered) Header() http.Header { return p.header }

// WriteHeader sets the status.
func (p *rendered) WriteHeader(status int) { p.status = status }

// Write appends to the body.
func (p *rendered) Write(b []byte) (int, error) { return p.body.Write(b) }

// The renderings of pages by viewer. The zero value has none.
type renderings struct {
	mu    sync.Mutex
	pages map[string]*renderedPage
}

// A renderedPage is a page of a viewer. Its renderings follow each other.
type renderedPage struct {
	pace *rate.Limiter
	done chan struct{} // closed once the last rendering that has begun has its page; nil: none has begun
	next *rendering    // the one that has not begun; nil: none is asked for
}

// A rendering has a page once done is closed.
type rendering struct {
	done chan struct{}
	page rendered
}

// next returns the page of the next rendering for the viewer, which begins after the call. The first call that asks for it
// renders it.
func (s *renderings) next(viewer string, render func() rendered) rendered {
	s.mu.Lock()
	p := s.pages[viewer]
	if p == nil {
		s.forget()
		p = &renderedPage{pace: rate.NewLimiter(renderRate, renderBurst)}
		s.pages[viewer] = p
	}
	n, done := p.next, p.done
	if n != nil {
		s.mu.Unlock()
		<-n.done
		return n.page
	}
	n = &rendering{done: make(chan struct{})}
	p.next = n
	s.mu.Unlock()
	if done != nil {
		<-done
	}
	time.Sleep(p.pace.Reserve().Delay())
	s.mu.Lock()
	p.done, p.next = n.done, nil
	s.mu.Unlock()
	n.page = render()
	close(n.done)
	return n.page
}

// forget removes the pages that no rendering has to wait for.
func (s *renderings) forget() {
	if s.pages == nil {
		s.pages = map[string]*renderedPage{}
	}
	maps.DeleteFunc(s.pages, func(_ string, p *renderedPage) bool { return p.rests() })
}

// rests reports whether a new page would be no different.
func (p *renderedPage) rests() bool {
	select {
	case <-p.done:
		return p.next == nil && p.pace.Tokens() >= renderBurst
	default:
		return false
	}
}
