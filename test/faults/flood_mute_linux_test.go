package faults_test

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"
)

const (
	unreadEach    = 20      // connections that ask and never read, of HTTP/1.1 and of HTTP/2
	unreadCalls   = 200     // that each makes over HTTP/1.1, of an answer that is some ten kilobytes long
	smallBuffer   = 4 << 10 // bytes: what the kernel keeps for who does not read
	settingWindow = 4       // of a stream, among the settings of HTTP/2
)

// shrinkReadBuffer has the kernel keep little of what is sent to the connection.
func shrinkReadBuffer(c net.Conn) error {
	return c.(*tls.Conn).NetConn().(*net.TCPConn).SetReadBuffer(smallBuffer)
}

// openUnread opens connections that ask for much and never read an answer.
func (e *securedReplica) openUnread() []io.Closer {
	e.t.Helper()
	conns := make([]io.Closer, 2*unreadEach)
	var opening errgroup.Group
	for i := range unreadEach {
		opening.Go(func() (err error) {
			conns[i], err = e.openUnreadConn()
			return err
		})
		opening.Go(func() (err error) {
			conns[unreadEach+i], err = e.openUnreadHTTP2()
			return err
		})
	}
	e.must(opening.Wait())
	return conns
}

func (e *securedReplica) openUnreadConn() (io.Closer, error) {
	c, err := e.httpConn()
	if err != nil {
		return nil, err
	}
	go func() { // until the service reads no more of it
		_ = c.send(strings.Repeat(e.request(http.MethodGet, "/openapi.yaml", "rude", ""), unreadCalls))
	}()
	return c, shrinkReadBuffer(c.Conn)
}

func (e *securedReplica) openUnreadHTTP2() (io.Closer, error) {
	w, err := e.http2Conn()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	err = w.write(frameSettings, 0, 0, binary.BigEndian.AppendUint32([]byte{0, settingWindow}, wholeWindow))
	w.mu.Unlock()
	err = errors.Join(err, shrinkReadBuffer(w.Conn))
	for range streamsPerConn {
		_, ask := w.open(http.MethodGet, "/openapi.yaml", e.secrets["rude"], "", true)
		err = errors.Join(err, ask)
	}
	return w, err
}
