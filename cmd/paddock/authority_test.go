package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An authority issues certificates and writes them to files.
type authority struct {
	*testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its own certificate
	last int64  // serial number
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{T: t, dir: t.TempDir()}
	a.key = a.newKey()
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of " + t.Name()},
		IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.last = 1
	a.file = filepath.Join(a.dir, "ca.pem")
	a.cert = a.write(a.file, a.cert, a.cert, a.key)
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.Fatal(err)
	}
	return key
}

// write signs the certificate, writes it to the file and returns it.
func (a *authority) write(path string, c, parent *x509.Certificate, subject *ecdsa.PrivateKey) *x509.Certificate {
	a.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &subject.PublicKey, a.key)
	if err != nil {
		a.Fatal(err)
	}
	a.writePEM(path, "CERTIFICATE", der)
	c, err = x509.ParseCertificate(der)
	if err != nil {
		a.Fatal(err)
	}
	return c
}

func (a *authority) writePEM(path, kind string, der []byte) {
	a.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.Fatal(err)
	}
}

// A pair is a certificate and its key, in files.
type pair struct {
	cert, key string
	serial    string
}

// issue writes a certificate for this machine and its key, and replaces those of the same name.
func (a *authority) issue(name string, use x509.ExtKeyUsage) pair {
	a.Helper()
	return a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{use}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

// issueFor writes a certificate of a server at the address, none if it is empty, valid between two times from now on.
func (a *authority) issueFor(name string, begin, end time.Duration, address string) pair {
	a.Helper()
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(begin), NotAfter: time.Now().Add(end),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if address != "" {
		c.IPAddresses = []net.IP{net.ParseIP(address)}
	}
	return a.sign(c)
}

// sign completes the certificate, and writes it and its key to files of its name.
func (a *authority) sign(c *x509.Certificate) pair {
	a.Helper()
	name := c.Subject.CommonName
	a.last++
	p := pair{cert: filepath.Join(a.dir, name+".pem"), key: filepath.Join(a.dir, name+".key"),
		serial: big.NewInt(a.last).String()}
	key := a.newKey()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.Fatal(err)
	}
	a.writePEM(p.key, "PRIVATE KEY", der)
	c.SerialNumber, c.KeyUsage = big.NewInt(a.last), x509.KeyUsageDigitalSignature
	a.write(p.cert, c, a.cert, key)
	return p
}
