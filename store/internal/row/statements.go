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

// A variant says what a statement does beside the least.
type variant struct {
	Lock   bool // look: lock the rows
	Events bool // swap: there are events
	Parts  bool // swap: parts change
	Queue  bool // read: with waiters
}

// The columns as Go reads and writes them. Nothing else lists them.
var (
	recordColumns = new(storedRecord).columns(nil)
	partColumns   = new(part).columns(nil)
	writeColumns  = new(write).columns(nil)
	saveColumns   = new(part).columns(ofChange(0))
	dropColumns   = saveColumns[:1+partKeyLength]
)

// guardParameters is the number of parameters of swap.sql before the arrays of columns.
const guardParameters = 9

// render returns the statement of the file as it is for the variant.
func render(name string, v variant) string {
	t, err := template.New(name).Parse(database.Statement(files, name))
	if err != nil {
		panic(fmt.Sprintf("row: %v", err)) // the files are part of the binary
	}
	drops := guardParameters + len(writeColumns)
	saves, refs := drops+len(dropColumns), drops
	if v.Parts {
		refs = saves + len(saveColumns)
	}
	var b strings.Builder
	err = t.Execute(&b, map[string]any{
		"Lock": v.Lock, "Events": v.Events, "Parts": v.Parts, "Queue": v.Queue,
		"Record":            names("", recordColumns),
		"RecordAssignments": assignments(recordColumns[1:], "n"),
		"Part":              names("", partColumns),
		"PartOfRecord":      names("p.", partColumns),
		"PartAssignments":   assignments(partColumns[partKeyLength:], "excluded"),
		"Writes":            parameters(guardParameters, writeColumns),
		"Write":             names("", writeColumns),
		"Drops":             parameters(drops, dropColumns),
		"Drop":              names("", dropColumns),
		"Saves":             parameters(saves, saveColumns),
		"Save":              names("", saveColumns),
		"Refs":              parameters(refs, refColumns),
		"Ref":               names("", refColumns),
	})
	if err != nil {
		panic(fmt.Sprintf("row: %v", err))
	}
	return b.String()
}

func names(prefix string, columns []column) string {
	return list(columns, func(_ int, c column) string { return prefix + c.name })
}

func assignments(columns []column, from string) string {
	return list(columns, func(_ int, c column) string { return c.name + " = " + from + "." + c.name })
}

// parameters returns arrays for unnest, which come after so many other parameters.
func parameters(after int, columns []column) string {
	return list(columns, func(i int, c column) string { return fmt.Sprintf("$%d::%s[]", after+i+1, c.kind) })
}

func list(columns []column, format func(int, column) string) string {
	all := make([]string, len(columns))
	for i, c := range columns {
		all[i] = format(i, c)
	}
	return strings.Join(all, ", ")
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
	for _, v := range []variant{{}, {Events: true}, {Parts: true}, {Events: true, Parts: true}} {
		all[v] = render("swap", v)
	}
	return all
}
