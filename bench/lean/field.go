package lean

import "bytes"

// Field returns the value of a member of JSON that a machine wrote without spaces, without the
// quotes if it is a string; nil if there is none of that name, at whatever depth. A string with
// escapes is not undone.
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
