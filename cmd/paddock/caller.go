package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/paddock-lock/paddock/access"
)

// The callerFlags say who asks a service, and whom we trust.
type callerFlags struct {
	KeyFile string `placeholder:"FILE" variable:"PADDOCK_KEY_FILE" help:"File that holds the API key and nothing else. Without it the key is in PADDOCK_KEY, if the service asks for one; arguments are seen by other users of the machine, so no flag takes it."`
	trustFlags

	env lookup
}

// AfterApply remembers where the key may be.
func (f *callerFlags) AfterApply(env lookup) error {
	f.env = env
	return nil
}

// secrets returns the variables that another paddock needs to ask likewise.
func (f callerFlags) secrets() []string {
	if f.env == nil {
		return nil
	}
	key, _ := f.env("PADDOCK_KEY")
	return []string{"PADDOCK_KEY=" + key}
}

// maxKeyFile is the greatest size of a file that holds a key, in bytes.
const maxKeyFile = 4 << 10

// key returns the API key, empty for none.
func (f callerFlags) key() (string, error) {
	if f.KeyFile == "" {
		if f.env == nil {
			return "", nil
		}
		key, _ := f.env("PADDOCK_KEY")
		return checkAPIKey("PADDOCK_KEY", strings.TrimSpace(key))
	}
	if err := checkFileName("--key-file", f.KeyFile); err != nil {
		return "", err
	}
	text, err := readFile(f.KeyFile, maxKeyFile)
	if err != nil {
		return "", usagef("--key-file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" {
		return "", usagef("--key-file: %s is empty; it is to hold the key that paddock key new has printed", f.KeyFile)
	}
	return checkAPIKey("--key-file: "+f.KeyFile, key)
}

// checkAPIKey returns the key, or a usage error, which does not repeat it.
func checkAPIKey(from, key string) (string, error) {
	if _, ok := access.KeyID(key); key != "" && !ok {
		return "", usagef("%s does not hold an API key: it begins with pk_, as paddock key new has printed it, and nothing goes with it", from)
	}
	return key, nil
}

// keyAlone finds what may be an API key, or most of one, where an argument is to be something else.
var keyAlone = regexp.MustCompile(`^\s*pk_[0-9A-Za-z]+_[0-9A-Za-z_-]{16,}\s*$`)

// checkFileName returns a usage error if what is to be the name of a file with keys may be a key
// itself, which it does not repeat.
func checkFileName(flag, name string) error {
	if keyAlone.MatchString(name) {
		return usagef("%s: that is an API key, not repeated here, which other users of the machine could see just now. "+
			"Give the name of a file; if it is that, begin it with ./", flag)
	}
	return nil
}

// readFile returns what is in the file, unless it is more than so many bytes.
func readFile(path string, most int64) (_ []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, err
}
