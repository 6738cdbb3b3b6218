package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// The tlsFlags say how to serve over TLS.
type tlsFlags struct {
	TLSCert     string `name:"tls-cert" placeholder:"FILE" variable:"PADDOCK_TLS_CERT" help:"Serve over TLS, with this certificate in PEM and those that lead to its authority. It is read again when it changes."`
	TLSKey      string `name:"tls-key" placeholder:"FILE" variable:"PADDOCK_TLS_KEY" help:"Private key of --tls-cert in PEM."`
	TLSClientCA string `name:"tls-client-ca" placeholder:"FILE" variable:"PADDOCK_TLS_CLIENT_CA" help:"Mutual TLS: let nobody connect without a certificate of these authorities, in PEM."`
}

// check returns a usage error if the flags do not go together.
func (f tlsFlags) check() error {
	if (f.TLSCert == "") != (f.TLSKey == "") {
		return usagef("--tls-cert and --tls-key go together; give both")
	}
	if f.TLSClientCA != "" && f.TLSCert == "" {
		return usagef("--tls-client-ca needs --tls-cert and --tls-key")
	}
	return nil
}

// load returns the certificates, nil for none.
func (f tlsFlags) load(log *slog.Logger) (*certificates, error) {
	if f.TLSCert == "" {
		return nil, nil
	}
	c := &certificates{tlsFlags: f, log: log}
	if err := c.read(); err != nil {
		return nil, usagef("TLS: %w", err)
	}
	return c, nil
}

// recheckEvery is how often, at most, the files are looked at.
const recheckEvery = time.Second

// The certificates are those that the files of the flags hold. They are read again at
// the first connection of a second, and taken over when they have changed. A mistake in them is
// logged and changes nothing.
type certificates struct {
	tlsFlags
	log *slog.Logger

	mu     sync.Mutex
	readAt time.Time // when the files were read last
	text   []byte    // of all the files then
	wrong  string    // what was wrong with them; empty: nothing
	config *tls.Config
}

// listen returns l as a listener for TLS. A nil c returns l.
func (c *certificates) listen(l net.Listener) net.Listener {
	if c == nil {
		return l
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
		// A session that is resumed shows no certificate again, whoever is trusted by then.
		SessionTicketsDisabled: c.TLSClientCA != "",
	})
}

// current returns what holds for the next connection.
func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.readAt) >= recheckEvery {
		wrong := ""
		if err := c.read(); err != nil {
			wrong = err.Error()
		}
		if wrong != "" && wrong != c.wrong {
			c.log.Error("the certificates cannot be used: those before stay", "error", wrong)
		}
		c.wrong = wrong
	}
	return c.config
}

// read takes over what is in the files. On an error all stays as it was.
func (c *certificates) read() error {
	c.readAt = time.Now()
	cert, err1 := readFile(c.TLSCert, maxCertificates)
	key, err2 := readFile(c.TLSKey, maxCertificates)
	var authorities []byte
	var err3 error
	if c.TLSClientCA != "" {
		authorities, err3 = readFile(c.TLSClientCA, maxCertificates)
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	text := bytes.Join([][]byte{cert, key, authorities}, []byte{0})
	if bytes.Equal(text, c.text) {
		return nil
	}
	config, err := c.build(cert, key, authorities)
	if err != nil {
		return err
	}
	c.text, c.config = text, config
	leaf := config.Certificates[0].Leaf
	c.log.Info("read the certificates", "names", leaf.DNSNames, "not_after", leaf.NotAfter, "mutual", c.TLSClientCA != "")
	return nil
}

func (c *certificates) build(cert, key, authorities []byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", c.TLSCert, c.TLSKey, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}
	if c.TLSClientCA == "" {
		return config, nil
	}
	config.ClientAuth, config.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, true
	config.ClientCAs, err = poolOf(c.TLSClientCA, authorities)
	return config, err
}
