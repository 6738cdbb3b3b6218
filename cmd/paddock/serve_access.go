package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/paddock-lock/paddock/access"
)

// The accessFlags say to whom the service answers, and for how much.
type accessFlags struct {
	AuthFile  string `placeholder:"FILE" variable:"PADDOCK_AUTH_FILE" help:"Answer to those alone who show an API key of this file, which paddock key makes. It is read again when it changes."`
	NoAuth    bool   `help:"Serve whoever can reach the address, under any name and without API keys. A flag only, so that no inherited variable opens the door."`
	PlainHTTP bool   `name:"plain-http" help:"Listen beyond loopback with API keys and without TLS, since a proxy in front ends it: keys and lease_ids are sent in the clear between the two. A flag only."`
	tlsFlags

	RatePerKey    float64 `default:"1000" placeholder:"N" variable:"PADDOCK_RATE_PER_KEY" help:"How many calls a second each API key may make of this replica; 0 for any number."`
	BurstPerKey   int     `default:"2000" placeholder:"N" variable:"PADDOCK_BURST_PER_KEY" help:"How many of them may come at once after a time of silence."`
	WaitersPerKey int     `default:"1000" placeholder:"N" variable:"PADDOCK_WAITERS_PER_KEY" help:"How many calls of each API key may wait here at once; 0 for any number."`
	StreamsPerKey int     `placeholder:"N" variable:"PADDOCK_STREAMS_PER_KEY" help:"How many streams of events each API key may have open here (200)."`

	MaxStreams     int `placeholder:"N" variable:"PADDOCK_MAX_STREAMS" help:"How many streams of events may be open here at once (2000)."`
	MaxConnections int `default:"20000" placeholder:"N" variable:"PADDOCK_MAX_CONNECTIONS" help:"How many connections may be open here at once; those beyond are closed."`
}

// check returns a usage error if the flags do not go together.
func (f accessFlags) check() error {
	if f.AuthFile != "" && f.NoAuth {
		return usagef("--auth-file (or PADDOCK_AUTH_FILE) asks for API keys, --no-auth for none; give one of them")
	}
	if f.PlainHTTP && f.TLSCert != "" {
		return usagef("--plain-http says that a proxy in front ends TLS, --tls-cert that this does; give one of them")
	}
	if f.RatePerKey < 0 || f.BurstPerKey < 0 || f.WaitersPerKey < 0 || f.StreamsPerKey < 0 || f.MaxStreams < 0 {
		return usagef("--rate-per-key, --burst-per-key, --waiters-per-key, --streams-per-key and --max-streams must not be below zero")
	}
	if f.MaxConnections < 1 {
		return usagef("--max-connections is %d; give 1 or more", f.MaxConnections)
	}
	return cmp.Or(checkFileName("--auth-file", f.AuthFile), f.tlsFlags.check())
}

// mayLeave is whether the service may listen beyond loopback: nobody gets in who is not meant
// to, and nobody on the way reads the keys, or somebody said that this is so.
func (f accessFlags) mayLeave() bool {
	return f.NoAuth || f.AuthFile != "" && (f.TLSCert != "" || f.PlainHTTP)
}

// whyNot says what is missing to listen beyond loopback.
func (f accessFlags) whyNot() string {
	if f.AuthFile == "" {
		return "and without API keys whoever does could take, release and revoke every lock. Listen on loopback (--listen " + usualAddress +
			"); make API keys (paddock key new) and give --auth-file, with --tls-cert and --tls-key; or, if nobody but those you trust can reach " +
			"the address, say --no-auth"
	}
	return "and without TLS whoever is on the way could read the API keys. Give --tls-cert and --tls-key; listen on loopback (--listen " +
		usualAddress + "); or, if a proxy in front ends TLS, say --plain-http"
}

// An opening is to whom the service answers. The zero opening is open to everybody.
type opening struct {
	accessFlags
	keys         *access.Keyring
	certificates *certificates
	localNames   bool // whether to answer to no name but localhost
}

// open reads the files of the flags. Close what it returns.
func (f accessFlags) open(log *slog.Logger) (opening, error) {
	o := opening{accessFlags: f, localNames: f.AuthFile == "" && !f.NoAuth}
	var err error
	if o.certificates, err = f.load(log); err != nil || f.AuthFile == "" {
		return o, err
	}
	if o.keys, err = access.Open(f.AuthFile, log); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w; paddock key new makes it, with the first key", err)
		}
		return o, usagef("--auth-file: %w", err)
	}
	return o, nil
}

func (o opening) close() {
	if o.keys != nil {
		o.keys.Close()
	}
}

// limits returns what each key may ask for.
func (f accessFlags) limits() access.Limits {
	return access.Limits{Rate: f.RatePerKey, Burst: f.BurstPerKey, Waiters: f.WaitersPerKey}
}
