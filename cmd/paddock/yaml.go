package main

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock/internal/wire"
)

// writeYAML writes v in YAML, with the members of its JSON in their order. Every character that a terminal would act
// on is an escape, which the usual encoders write only for some of them.
func writeYAML(w io.Writer, v any) error {
	text, err := wire.Encode(v)
	if err != nil {
		return err
	}
	y := yamlEncoder{tokens: json.NewDecoder(bytes.NewReader(text))}
	y.tokens.UseNumber()
	if err := y.value(0, false); err != nil {
		return err
	}
	_, err = w.Write(bytes.TrimLeft(y.out.Bytes(), " \n"))
	return err
}

// A yamlEncoder writes the tokens of JSON in the block style of YAML.
type yamlEncoder struct {
	tokens *json.Decoder
	out    bytes.Buffer
}

// value writes the next value after a key, or after the dash of an item. Lines of a collection have the indentation; the
// first member of an item stands behind its dash.
func (y *yamlEncoder) value(indent int, inItem bool) error {
	token, err := y.tokens.Token()
	if err != nil {
		return err
	}
	open, isCollection := token.(json.Delim)
	if !isCollection {
		y.out.WriteString(" " + yamlScalar(token) + "\n")
		return nil
	}
	if !y.tokens.More() {
		y.out.WriteString(map[json.Delim]string{'{': " {}\n", '[': " []\n"}[open])
	} else if !inItem || open == '[' {
		y.out.WriteByte('\n')
	}
	for first := true; y.tokens.More(); first = false {
		if inItem && open == '{' && first {
			y.out.WriteByte(' ')
		} else {
			y.out.WriteString(strings.Repeat(" ", indent))
		}
		if err := y.entry(indent, open); err != nil {
			return err
		}
	}
	_, err = y.tokens.Token() // the closing bracket
	return err
}

// entry writes a member of an object, or an item of an array.
func (y *yamlEncoder) entry(indent int, open json.Delim) error {
	if open == '[' {
		y.out.WriteByte('-')
		return y.value(indent+2, true)
	}
	key, err := y.tokens.Token()
	if err != nil {
		return err
	}
	y.out.WriteString(yamlScalar(key) + ":")
	return y.value(indent+2, false)
}

// plainYAML matches texts that need no quotes, unless they are words for other values.
var plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./@-]*(:[A-Za-z0-9_./@-]+)*$`)

// yamlWords are texts that some reader of YAML takes for a boolean or for nothing.
var yamlWords = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// yamlScalar returns a text, a number, a boolean or null. The escapes of Go are escapes of YAML, too.
func yamlScalar(token json.Token) string {
	switch v := token.(type) {
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case string:
		if plainYAML.MatchString(v) && !slices.Contains(yamlWords, strings.ToLower(v)) {
			return v
		}
		return strconv.Quote(v)
	}
	return "null"
}
