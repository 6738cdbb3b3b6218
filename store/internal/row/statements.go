package row

import (
	"embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/paddock-lock/paddock/store/internal/database"
)

//go:embed sql/*.sql
var files embed.FS

// A column of a table, and the type of its parameter.
type column struct{ name, kind string }

// The columns, in the order in which Go reads and writes them. Nothing else lists them.
var (
	recordOwn    = []column{{"token", "bigint"}, {"revision", "bigint"}, {"last_end", "smallint"}, {"changed_at", "timestamptz"}, {"parts", "integer"}}
	leaseColumns = []column{
		{"lease_id", "uuid"}, {"mode", "smallint"}, {"holder", "text"}, {"acquired_at", "timestamptz"}, {"expires_at", "timestamptz"},
		{"ttl_ms", "bigint"}, {"rest", "json"},
	}
	recordColumns = append(recordOwn[:len(recordOwn):len(recordOwn)], leaseColumns...)
	partKey       = []column{{"slot", "integer"}, {"place", "bigint"}}
	partColumns   = append([]column{{"slot", "integer"}, {"place", "bigint"}, {"unclaimed", "boolean"}, {"token", "bigint"},
		{"attachment", "bigint"}, {"replica", "bigint"}}, leaseColumns...)
)

// A variant says what a statement does beside the least.
type variant struct {
	Lock   bool // look: lock the rows
	Events bool // swap: there are events
	Parts  bool // swap: parts change
	Queue  bool // read: with waiters
}

// The number of parameters of swap.sql before those of records, and of records.
const (
	guardParameters  = 9
	anchorParameters = 7
)

// render returns the statement of the file as it is for the variant.
func render(name string, v variant) string {
	t, err := template.New(name).Parse(database.Statement(files, name))
	if err != nil {
		panic(fmt.Sprintf("row: %v", err)) // the files are part of the binary
	}
	first := guardParameters + anchorParameters + 1
	dropped := first + len(recordColumns)
	saved := dropped + 2 + len(partKey)
	var b strings.Builder
	err = t.Execute(&b, map[string]any{
		"Lock": v.Lock, "Events": v.Events, "Parts": v.Parts, "Queue": v.Queue,
		"Record":          "name, last_event, " + names(recordColumns),
		"Part":            names(partColumns),
		"NullablePart":    nullable(partColumns),
		"Columns":         names(recordColumns),
		"Assignments":     assignments(recordColumns, "n"),
		"Parameters":      parameters(first, recordColumns),
		"Dropped":         parameters(dropped, append([]column{{"ord", "integer"}, {"name", "text"}}, partKey...)),
		"PartParameters":  parameters(saved, append([]column{{"ord", "integer"}, {"name", "text"}}, partColumns...)),
		"PartAssignments": assignments(partColumns[len(partKey):], "excluded"),
	})
	if err != nil {
		panic(fmt.Sprintf("row: %v", err))
	}
	return b.String()
}

func names(columns []column) string {
	var list []string
	for _, c := range columns {
		list = append(list, c.name)
	}
	return strings.Join(list, ", ")
}

// nullable returns the columns of a part that may be missing: its slot, and all of them with the defaults of their types.
func nullable(columns []column) string {
	zero := map[string]string{"integer": "0", "bigint": "0", "boolean": "false"}
	list := []string{"p.slot"}
	for _, c := range columns {
		if z := zero[c.kind]; z != "" {
			list = append(list, fmt.Sprintf("coalesce(p.%s, %s)", c.name, z))
		} else {
			list = append(list, "p."+c.name)
		}
	}
	return strings.Join(list, ", ")
}

func assignments(columns []column, from string) string {
	var list []string
	for _, c := range columns {
		list = append(list, c.name+" = "+from+"."+c.name)
	}
	return strings.Join(list, ", ")
}

// parameters returns arrays for unnest, the first one with the number first.
func parameters(first int, columns []column) string {
	var list []string
	for i, c := range columns {
		list = append(list, fmt.Sprintf("$%d::%s[]", first+i, c.kind))
	}
	return strings.Join(list, ", ")
}

var (
	sqlLook      = render("look", variant{})
	sqlLookLock  = render("look", variant{Lock: true})
	sqlParts     = render("parts", variant{})
	sqlEndings   = render("endings", variant{})
	sqlDraw      = render("draw", variant{})
	sqlSwaps     = swaps()
	sqlLockedNow = render("locked", variant{})
	sqlKnown     = render("known", variant{})
	sqlRead      = render("read", variant{})
	sqlReadQueue = render("read", variant{Queue: true})
	sqlFence     = render("fence", variant{})
	sqlSlot      = render("slot", variant{})
)

// swaps returns the variants of swap.sql.
func swaps() map[variant]string {
	all := make(map[variant]string)
	for _, events := range []bool{false, true} {
		for _, parts := range []bool{false, true} {
			v := variant{Events: events, Parts: parts}
			all[v] = render("swap", v)
		}
	}
	return all
}
