package row

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5/pgtype"
)

// An element is a type of columns whose values are sent in arrays.
type element struct {
	oid, array uint32
	size       int // about how many bytes a value has
}

// elements are those types, by their names in SQL.
var elements = map[string]element{
	"bigint":      {pgtype.Int8OID, pgtype.Int8ArrayOID, 8},
	"boolean":     {pgtype.BoolOID, pgtype.BoolArrayOID, 1},
	"integer":     {pgtype.Int4OID, pgtype.Int4ArrayOID, 4},
	"json":        {pgtype.JSONOID, pgtype.JSONArrayOID, 0}, // mostly null
	"smallint":    {pgtype.Int2OID, pgtype.Int2ArrayOID, 2},
	"text":        {pgtype.TextOID, pgtype.TextArrayOID, 24},
	"tid":         {pgtype.TIDOID, pgtype.TIDArrayOID, 6},
	"timestamptz": {pgtype.TimestamptzOID, pgtype.TimestamptzArrayOID, 8},
	"uuid":        {pgtype.UUIDOID, pgtype.UUIDArrayOID, 16},
	"xid":         {pgtype.XIDOID, pgtype.XIDArrayOID, 4},
}

// An array is one column of some rows, as PostgreSQL receives it: in the binary format of arrays. pgx would look for the way
// to encode each value, which costs three times as much.
type array struct {
	oid   uint32 // of the elements
	n     int
	nulls uint32 // 1 if there are any
	sent  []byte // room for the header, and the elements
}

const (
	arrayHeader = 20         // bytes: dimensions, nulls, type, length, lower bound
	nullLength  = 0xFFFFFFFF // of an element that is null
)

// newArrays returns empty arrays for the columns, with room for about n elements.
func newArrays(columns []column, n int) []array {
	all, room := make([]array, len(columns)), 0
	sizes := make([]int, len(columns))
	for i, c := range columns {
		e := elements[c.kind]
		all[i].oid, sizes[i] = e.oid, arrayHeader+n*(4+e.size)
		room += sizes[i]
	}
	buffer := make([]byte, room)
	for i, size := range sizes {
		all[i].sent, buffer = buffer[:arrayHeader:size], buffer[size:]
	}
	return all
}

// add adds the value of a column.
func (a *array) add(value any) {
	a.n++
	sent, valid := appendValue(a.sent, value)
	if !valid {
		sent, a.nulls = binary.BigEndian.AppendUint32(sent[:len(a.sent)], nullLength), 1
	}
	a.sent = sent
}

// appendValue appends the value of a column: its length and its bytes. If it is not valid, it is null, and what is appended
// means nothing.
func appendValue(b []byte, value any) (_ []byte, valid bool) {
	order := binary.BigEndian
	switch v := value.(type) {
	case *pgtype.Int8:
		return order.AppendUint64(order.AppendUint32(b, 8), uint64(v.Int64)), v.Valid
	case *pgtype.Timestamptz:
		return order.AppendUint64(order.AppendUint32(b, 8), uint64(sinceY2K(v))), v.Valid
	case *pgtype.Int4:
		return order.AppendUint32(order.AppendUint32(b, 4), uint32(v.Int32)), v.Valid
	case *pgtype.Int2:
		return order.AppendUint16(order.AppendUint32(b, 2), uint16(v.Int16)), v.Valid
	case *pgtype.Text:
		return append(order.AppendUint32(b, uint32(len(v.String))), v.String...), v.Valid
	case *[]byte:
		return append(order.AppendUint32(b, uint32(len(*v))), *v...), *v != nil
	case *pgtype.UUID:
		return append(order.AppendUint32(b, 16), v.Bytes[:]...), v.Valid
	case *pgtype.Bool:
		return append(order.AppendUint32(b, 1), asByte(v.Bool)), v.Valid
	case *pgtype.Uint32:
		return order.AppendUint32(order.AppendUint32(b, 4), v.Uint32), v.Valid
	case *pgtype.TID:
		return order.AppendUint16(order.AppendUint32(order.AppendUint32(b, 6), v.BlockNumber), v.OffsetNumber), v.Valid
	}
	panic(fmt.Sprintf("row: a column with a %T", value))
}

func asByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// sinceY2K returns a timestamp as PostgreSQL stores it: in microseconds since the year 2000.
func sinceY2K(t *pgtype.Timestamptz) int64 {
	const y2k = 946_684_800_000_000 // microseconds since 1970
	if t.InfinityModifier == pgtype.Infinity {
		return math.MaxInt64
	}
	return t.Time.UnixMicro() - y2k
}

// appendTo appends the array to b.
func (a *array) appendTo(b []byte) []byte {
	for i, field := range [...]uint32{1, a.nulls, a.oid, uint32(a.n), 1} {
		binary.BigEndian.PutUint32(a.sent[4*i:], field)
	}
	return append(b, a.sent...)
}

// An arrayCodec sends each array as it is.
type arrayCodec struct{ *pgtype.ArrayCodec }

// PreferredFormat is binary for arrays of text and JSON, too.
func (arrayCodec) PreferredFormat() int16 { return pgtype.BinaryFormatCode }

// PlanEncode implements pgtype.Codec.
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(*array); ok {
		return encodedPlan{}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// An encodedPlan is a pgtype.EncodePlan for an array.
type encodedPlan struct{}

func (encodedPlan) Encode(value any, b []byte) ([]byte, error) {
	return value.(*array).appendTo(b), nil
}

// acceptArrays makes a connection send each array as it is.
func acceptArrays(m *pgtype.Map) {
	for _, e := range elements {
		t, _ := m.TypeForOID(e.array)
		codec, ok := t.Codec.(*pgtype.ArrayCodec)
		if !ok {
			return // it does already
		}
		m.RegisterType(&pgtype.Type{Name: t.Name, OID: t.OID, Codec: arrayCodec{codec}})
	}
}
