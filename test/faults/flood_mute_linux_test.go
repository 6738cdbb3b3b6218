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
	muteEach      = 20      // connections that ask and never read, of HTTP/1.1 and of HTTP/2
	muteCalls     = 200     // that each makes over HTTP/1.1, of an answer that is some ten kilobytes long
	smallBuffer   = 4 << 10 // bytes: what the kernel keeps for who does not read
	settingWindow = 4       // of a stream, among the settings of HTTP/2
)

// small has the kernel keep little of what is sent to the connection.
func small(c net.Conn) error {
	return c.(*tls.Conn).NetConn().(*net.TCPConn).SetReadBuffer(smallBuffer)
}

// mutes opens connections that ask for much and never read an answer.
func (e *exposed) mutes() []io.Closer {
	e.t.Helper()
	conns := make([]io.Closer, 2*muteEach)
	var opening errgroup.Group
	for i := range muteEach {
		opening.Go(func() (err error) {
			conns[i], err = e.mute()
			return err
		})
		opening.Go(func() (err error) {
			conns[muteEach+i], err = e.muteTogether()
			return err
		})
	}
	e.must(opening.Wait())
	return conns
}

func (e *exposed) mute() (io.Closer, error) {
	c, err := e.caller()
	if err != nil {
		return nil, err
	}
	go func() { // until the service reads no more of it
		_ = c.say(strings.Repeat(e.request(http.MethodGet, "/openapi.yaml", "rude", ""), muteCalls))
	}()
	return c, small(c.Conn)
}

func (e *exposed) muteTogether() (io.Closer, error) {
	w, err := e.wire()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	err = w.write(frameSettings, 0, 0, binary.BigEndian.AppendUint32([]byte{0, settingWindow}, wholeWindow))
	w.mu.Unlock()
	err = errors.Join(err, small(w.Conn))
	for range perWire {
		_, ask := w.open(http.MethodGet, "/openapi.yaml", e.secrets["rude"], "", true)
		err = errors.Join(err, ask)
	}
	return w, err
}
