package main

import (
	"net/http"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// How long the service may keep a command waiting.
const (
	answerWithin = 5 * time.Second  // for an answer that is asked for again if it does not come
	lookWithin   = 15 * time.Second // for one that is not: longer than the service itself gives up after
)

// The serviceFlags say where the service is, and who asks it.
type serviceFlags struct {
	URL string `default:"http://127.0.0.1:8080" variable:"PADDOCK_URL" help:"Base URL of the service."`
	callerFlags
}

// again returns the flags as arguments of another paddock.
func (f serviceFlags) again() []string {
	args := []string{"--url", f.URL}
	for flag, value := range map[string]string{"--key-file": f.KeyFile, "--ca": f.CA, "--cert": f.Cert, "--cert-key": f.CertKey} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	return args
}

// open returns a client of the service for calls of any kind, or a usage error,
// which repeats neither the URL, which may hold a password, nor the key. It sends nothing.
func (f serviceFlags) open() (*client.Client, error) {
	return f.within(lock.MaxWait + lookWithin)
}

// within returns a client whose calls end after that time, whatever they wait for.
// To end one so is to lose its answer; it gives up nothing, as the end of a context
// would.
func (f serviceFlags) within(limit time.Duration) (*client.Client, error) {
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	secured, err := f.config()
	if err != nil {
		return nil, err
	}
	locks, err := client.New(client.Options{BaseURL: f.URL, Key: key, TLS: secured, HTTP: &http.Client{Timeout: limit}})
	if err != nil {
		return nil, usagef("--url: %w", err)
	}
	return locks, nil
}
