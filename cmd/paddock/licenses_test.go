package main

import (
	"strings"
	"testing"
)

func TestVersionPrintsThirdPartyLicenses(t *testing.T) {
	t.Parallel()
	code, stdout, _ := call(t, nil, "version", "--licenses")
	if code != exitOK || !strings.Contains(stdout, "github.com/jackc/pgx/v5") || !strings.Contains(stdout, "Swagger UI") {
		t.Errorf("version --licenses: exit code %d, %d bytes", code, len(stdout))
	}
}
