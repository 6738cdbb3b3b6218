package main

import (
	"crypto/tls"
	"crypto/x509"
)

// maxCertificates is the greatest size of a file of certificates, in bytes.
const maxCertificates = 4 << 20

// The trustFlags say whom to trust over TLS, and who we are.
type trustFlags struct {
	CA      string `name:"ca" placeholder:"FILE" variable:"PADDOCK_CA" help:"Certificates in PEM of the authorities to trust instead of those of the system."`
	Cert    string `placeholder:"FILE" variable:"PADDOCK_CERT" help:"Certificate in PEM to show to a service that asks for one, with those that lead to its authority."`
	CertKey string `placeholder:"FILE" variable:"PADDOCK_CERT_KEY" help:"Private key of --cert in PEM."`
}

// config returns what the flags say, nil if they say nothing, or a usage error. The
// certificate is read again for each connection, since it may be renewed meanwhile.
func (f trustFlags) config() (*tls.Config, error) {
	if f == (trustFlags{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pool, err := readPool(f.CA)
		if err != nil {
			return nil, usagef("--ca: %w", err)
		}
		config.RootCAs = pool
	}
	if f.Cert == "" && f.CertKey == "" {
		return config, nil
	}
	if f.Cert == "" || f.CertKey == "" {
		return nil, usagef("--cert and --cert-key go together; give both")
	}
	if _, err := tls.LoadX509KeyPair(f.Cert, f.CertKey); err != nil {
		return nil, usagef("--cert, --cert-key: %w", err)
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.CertKey)
		return &pair, err
	}
	return config, nil
}

// readPool returns the certificates in the file.
func readPool(path string) (*x509.CertPool, error) {
	text, err := readFile(path, maxCertificates)
	if err != nil {
		return nil, err
	}
	return poolOf(path, text)
}

func poolOf(path string, text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, usagef("%s holds no certificate in PEM", path)
	}
	return pool, nil
}
