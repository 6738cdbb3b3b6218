package lean

import "bytes"

// Field returns the value of the first member with the name, at any depth, or nil if there is none. The
// JSON must not contain spaces around the colon. Strings are returned without quotes and with their
// escapes unchanged.
func Field(json []byte, name string) []byte {
	for rest := json; ; {
		i := bytes.Index(rest, []byte(name))
		if i < 0 {
			return nil
		}
		before, after := rest[:i], rest[i+len(name):]
		if bytes.HasSuffix(before, []byte(`"`)) && bytes.HasPrefix(after, []byte(`":`)) {
			return value(after[2:])
		}
		rest = after
	}
}

func value(json []byte) []byte {
	end := `,}]`
	if bytes.HasPrefix(json, []byte(`"`)) {
		json, end = json[1:], `"`
	}
	i := bytes.IndexAny(json, end)
	if i < 0 {
		return nil
	}
	return json[:i]
}
