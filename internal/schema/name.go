package schema

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
)

// A Name is the name of a schema. It needs no quotes in SQL. The zero Name is Default.
type Name string

// Default is the name in the SQL files.
const Default Name = "paddock"

// maxLength is the length of the longest Name. Names of channels have it as a prefix, and PostgreSQL allows 63 bytes.
const maxLength = 40

var pattern = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// Parse returns the Name, Default for an empty text. The error says which names there may be.
func Parse(text string) (Name, error) {
	switch {
	case text == "":
		return Default, nil
	case !pattern.MatchString(text), len(text) > maxLength:
		return "", fmt.Errorf("%q cannot name the schema; use at most %d of a-z, 0-9 and _, and no digit first", text, maxLength)
	case text == "public":
		return "", fmt.Errorf("%q cannot name the schema, because the tables of everybody are there; use a schema that only "+
			"Paddock uses, such as %s", text, Default)
	case strings.HasPrefix(text, "pg_"), text == "information_schema", slices.Contains(strings.Fields(reserved), text):
		return "", fmt.Errorf("%q cannot name the schema, because PostgreSQL reserves it; use another name", text)
	}
	return Name(text), nil
}

// String returns the name.
func (n Name) String() string {
	if n == "" {
		return string(Default)
	}
	return string(n)
}

// Flag returns what a command of paddock needs to act on n: nothing for Default, else the flag after a space.
func (n Name) Flag() string {
	if n.String() == string(Default) {
		return ""
	}
	return " --schema " + string(n)
}

// inText matches Default where it is a word of its own, not a part of another name.
var inText = regexp.MustCompile(`\b` + string(Default) + `\b`)

// In returns SQL, or a message about it, that is written for Default, for the schema n. Every word that is Default
// becomes n.
func (n Name) In(text string) string {
	if n == "" || n == Default {
		return text
	}
	return inText.ReplaceAllLiteralString(text, string(n))
}

// Key returns the key of an advisory lock that the schemas of a database do not share: key for Default, else one that
// is derived from n and key. Two schemas may have the same one, which is as improbable as two equal random numbers.
func (n Name) Key(key int64) int64 {
	if n == "" || n == Default {
		return key
	}
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, n, key) // it never fails
	return int64(hash.Sum64() >> 1)
}

// reserved are the words that PostgreSQL 14 to 18 do not take as the name of a schema without quotes.
const reserved = `all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate
collation column concurrently constraint create cross current_catalog current_date current_role current_schema
current_time current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign
freeze from full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit
localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references
returning right select session_user similar some symmetric system_user table tablesample then to trailing true union unique
user using variadic verbose when where window with`
