package proctest

import (
	"io"
	"net/http"
	"testing"
)

// Scrape returns the metrics at the URL. The test fails if they are not answered within Patience, or with another
// status than 200.
func Scrape(t testing.TB, url string) string {
	t.Helper()
	answer, err := (&http.Client{Timeout: Patience}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it is read to its end
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("the scrape of %s is answered %d %s, %v", url, answer.StatusCode, text, err)
	}
	return string(text)
}
