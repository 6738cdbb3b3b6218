package lock

// Bounds of what callers may send as text.
const (
	// MaxNameLength is the greatest length of a lock's name, and of a fenced
	// resource's key, in bytes.
	MaxNameLength = 200
	// MaxHolderLength is the greatest length of a holder, in characters.
	MaxHolderLength = 200
	// MaxReasonLength is the greatest length of a revocation's reason, in characters.
	MaxReasonLength = 500
	// MaxMetadataSize is the greatest size of a lease's metadata, in bytes of JSON.
	MaxMetadataSize = 4096
)

// CheckName returns an ErrInvalid error unless name can be a lock's name: 1 to
// 200 of the characters A-Z a-z 0-9 . _ : @ -, the first a letter or a digit.
// Names are compared byte by byte. A colon separates levels; there is no slash,
// since proxies rewrite it.
func CheckName(name string) error { return checkName("name", name) }

// CheckKey returns an ErrInvalid error unless key can be a fenced resource's key,
// which is formed like a lock's name.
func CheckKey(key string) error { return checkName("key", key) }

func checkName(field, name string) error {
	switch {
	case name == "":
		return Invalid(field, "is empty; give 1 to %d characters", MaxNameLength)
	case len(name) > MaxNameLength:
		return Invalid(field, "has %d bytes; at most %d are allowed", len(name), MaxNameLength)
	case !isAlphanumeric(name[0]):
		return Invalid(field, "must begin with a letter or a digit")
	}
	for i := range len(name) {
		if !isNameByte(name[i]) {
			return Invalid(field, "has a character that is not allowed at byte %d; use A-Z a-z 0-9 . _ : @ -", i)
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isNameByte(c byte) bool {
	return isAlphanumeric(c) || c == '.' || c == '_' || c == ':' || c == '@' || c == '-'
}
