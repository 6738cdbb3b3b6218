package supervise

import (
	"fmt"
	"io"

	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
)

// AsyncStderr writes messages to standard error without blocking its callers: a pipe that is not read must not keep
// a command running whose lease is lost.
type AsyncStderr struct {
	lines chan string
	quit  chan struct{}
	done  chan struct{}
}

// maxPending is how many messages are kept while they cannot be written. Later ones are dropped.
const maxPending = 64

// NewAsyncStderr returns an AsyncStderr that writes to w. Close it.
func NewAsyncStderr(w io.Writer) *AsyncStderr {
	s := &AsyncStderr{lines: make(chan string, maxPending), quit: make(chan struct{}), done: make(chan struct{})}
	go s.write(w)
	return s
}

func (s *AsyncStderr) write(w io.Writer) {
	defer close(s.done)
	for {
		select {
		case line := <-s.lines:
			fmt.Fprintln(w, line)
		case <-s.quit:
			for len(s.lines) > 0 {
				fmt.Fprintln(w, <-s.lines)
			}
			return
		}
	}
}

// Printf writes a message as one line that begins with "paddock: ".
func (s *AsyncStderr) Printf(format string, args ...any) {
	select {
	case s.lines <- printable.Text(fmt.Sprintf("paddock: "+format, args...)):
	default:
	}
}

// Close returns when all pending messages are written. Messages after it are lost.
func (s *AsyncStderr) Close() {
	close(s.quit)
	<-s.done
}
