package main

import (
	"io"

	"github.com/paddock-lock/paddock"
)

// licensesFlag makes a command print the third-party licenses.
type licensesFlag struct {
	Licenses bool `help:"Print the licenses of the third-party software in this binary."`
}

// printLicenses prints THIRD_PARTY_LICENSES.
func printLicenses(p *program) error {
	_, err := io.WriteString(p.stdout, paddock.ThirdPartyLicenses)
	return err
}
