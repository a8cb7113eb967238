package evaluate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/netip"
	"strconv"

	"github.com/tidwall/gjson"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/index/embedded/segment/fieldvalue"
)

// typeIP is the type of IP addresses, which are ordered by their bits.
const typeIP = "ip"

// fieldID is the path of the document ids, which a segment stores as a text column.
const fieldID = "_id"

// keyKind is how the values of a sort key are obtained and compared.
type keyKind uint8

const (
	// textKey and numberKey select one of a document's values, so that ordinals can be compared within a segment.
	textKey keyKind = iota
	numberKey
	// computedIntKey and computedFloatKey are computed from all values (sum, average, median).
	computedIntKey
	computedFloatKey
)

// key is one key of an order.
type key struct {
	index.Sort
	kind keyKind
	// highest selects the highest of several values instead of the lowest, for textKey and numberKey.
	highest bool
}

// order is a sort order: sorts is the number of requested keys, which the document id follows as tie-breaker.
type order struct {
	keys  []key
	sorts int
}

func newOrder(sorts []index.Sort) (order, error) {
	o := order{sorts: len(sorts)}
	for _, s := range sorts {
		k, err := newKey(s)
		if err != nil {
			return order{}, err
		}
		o.keys = append(o.keys, k)
	}
	o.keys = append(o.keys, key{Sort: index.Sort{Field: query.Field{Path: fieldID}}})
	return o, nil
}

func newKey(s index.Sort) (key, error) {
	k := key{Sort: s, highest: s.Mode == "max" || s.Mode == "" && s.Descending}
	switch s.Mode {
	case "", "min", "max":
		if query.Keyed(s.Field.Type) {
			k.kind = numberKey
		}
	default:
		k.kind = computedIntKey
		if fieldtype.Of(s.Field.Type).Fractional() {
			k.kind = computedFloatKey
		}
	}
	return k, s.Check()
}

// value is a document's value for a key: text for a textKey, otherwise a number with the order of the values.
type value struct {
	missing bool
	number  uint64
	text    []byte
}

// compare compares two values of a key.
func (k *key) compare(a, b value) int {
	if a.missing || b.missing {
		if a.missing == b.missing {
			return 0
		}
		if a.missing == k.MissingFirst {
			return -1
		}
		return 1
	}
	var c int
	if k.Field.Type == typeIP {
		c = fieldvalue.CompareAddresses(a.text, b.text)
	} else if k.kind == textKey {
		c = bytes.Compare(a.text, b.text)
	} else {
		c = cmp.Compare(a.number, b.number)
	}
	if k.Descending {
		return -c
	}
	return c
}

// appendJSON appends a value for Hit.Sort.
func (k *key) appendJSON(b []byte, v value) []byte {
	switch {
	case v.missing:
		return append(b, "null"...)
	case k.kind == textKey:
		return gjson.AppendJSONString(b, string(v.text))
	case k.kind == computedIntKey:
		return strconv.AppendInt(b, query.Signed(v.number), 10)
	case k.kind == numberKey && integral(k.Field.Type):
		return strconv.AppendInt(b, integer(k.Field.Type, v.number), 10)
	case k.kind == computedFloatKey:
		return append(b, jsontext.Number(query.FloatOf(v.number))...)
	default:
		return append(b, query.Text(k.Field, v.number)...)
	}
}

// afterValue is the sort value after which documents start, for one key.
type afterValue struct {
	value
	// between is set if the type cannot represent the value: it then lies between value and the next lower value of the
	// type. beyond is set if it is above all values of the type.
	between, beyond bool
}

// parseAfter parses the values of a Hit.Sort.
func (o *order) parseAfter(after []json.RawMessage) ([]afterValue, error) {
	if len(after) == 0 {
		return nil, nil
	}
	if len(after) != o.sorts {
		return nil, core.NewError(core.CodeInvalid, "the number of sort values to continue after is "+strconv.Itoa(len(after))+
			", but the order has "+strconv.Itoa(o.sorts)+" keys")
	}
	all := make([]afterValue, 0, len(after))
	for i, raw := range after {
		k := &o.keys[i]
		p, ok := k.parseAfter(raw)
		if !ok {
			return nil, core.NewError(core.CodeInvalid,
				"sort value "+strconv.Itoa(i+1)+" to continue after is not a value of the field "+strconv.Quote(k.Field.Path))
		}
		all = append(all, p)
	}
	return all, nil
}

func (k *key) parseAfter(raw json.RawMessage) (afterValue, bool) {
	var v any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil || !json.Valid(raw) { // Valid rejects trailing data
		return afterValue{}, false
	}
	switch v := v.(type) {
	case nil:
		return afterValue{value: value{missing: true}}, true
	case string:
		_, err := netip.ParseAddr(v)
		return afterValue{value: value{text: []byte(v)}}, k.kind == textKey && (k.Field.Type != typeIP || err == nil)
	case bool:
		number, _ := query.Key(k.Field, strconv.FormatBool(v))
		return afterValue{value: value{number: number}}, k.kind == numberKey && k.Field.Type == "boolean"
	case json.Number:
		return k.parseAfterNumber(v.String())
	default:
		return afterValue{}, false
	}
}

// parseAfterNumber parses a number. For a numberKey it may be outside the range of the type.
func (k *key) parseAfterNumber(literal string) (afterValue, bool) {
	switch {
	case k.kind == textKey:
		return afterValue{}, false
	case k.kind == computedFloatKey:
		v, err := strconv.ParseFloat(literal, 64)
		return afterValue{value: value{number: query.FloatKey(v)}}, err == nil
	case k.kind == computedIntKey || k.Field.Type == "boolean" || query.Dated(k.Field.Type):
		v, err := strconv.ParseInt(literal, 10, 64)
		if k.kind == numberKey && k.Field.Type == "boolean" {
			return afterValue{value: value{number: uint64(v)}}, err == nil && (v == 0 || v == 1)
		}
		return afterValue{value: value{number: query.SignedKey(v)}}, err == nil
	}
	if _, err := strconv.ParseFloat(literal, 64); err != nil {
		return afterValue{}, false // out of range for every type
	}
	bound := query.Bound{Set: true, Inclusive: true, Number: literal}
	from, _, some := query.KeyRange(k.Field, bound, query.Bound{})
	_, to, exact := query.KeyRange(k.Field, query.Bound{}, bound)
	return afterValue{value: value{number: from}, beyond: !some, between: some && (!exact || from != to)}, true
}

// integral reports whether the keys of a type are integers, which Hit.Sort contains unchanged.
func integral(fieldType string) bool {
	t := fieldtype.Of(fieldType)
	return t.Keyed() && t.Group != fieldtype.Unsigned && !t.Fractional()
}

// integer returns the integer of the key of an integral type, 0 or 1 for a boolean.
func integer(fieldType string, key uint64) int64 {
	if fieldType == "boolean" {
		return int64(key)
	}
	return query.Signed(key)
}
