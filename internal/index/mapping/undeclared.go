package mapping

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"tutti/internal/core"
)

// metaTypes is the path in the _meta of a mapping of how the types of fields are decided. Indices made by earlier releases lack it.
const metaTypes = "tutti.types"

// typesDeclared is the value of metaTypes of a mapping whose undeclared fields do not depend on the form of their first value.
const typesDeclared = "declared"

// UsesDeclared reports whether a mapping records that the form of a value does not decide its type: any undeclared number is double, any
// undeclared string keyword. Indices keep the rule with which they were made.
func (f *Field) UsesDeclared() bool {
	return gjson.GetBytes(f.Params["_meta"], metaTypes).String() == typesDeclared
}

// RecordDeclared records in the parameters of a mapping's root what UsesDeclared reports, unless another rule is recorded there. meta is
// the _meta before, nil for none.
func (f *Field) RecordDeclared(meta json.RawMessage) {
	if !gjson.GetBytes(meta, metaTypes).Exists() {
		f.recordMeta(meta, metaTypes, typesDeclared)
	}
}

// UseFirstValue records in the parameters of a mapping's root the rule of earlier releases, by which the form of the first value decides.
func (f *Field) UseFirstValue() { f.recordMeta(f.Params["_meta"], metaTypes, "") }

// metaKind is the member of the meta of an undeclared field with the JSON kind of its values.
const metaKind = "tutti_kind"

// kindNumber is the metaKind of numbers.
const kindNumber = "number"

// markUndeclared records in the meta of a new field that nothing declares it, and the JSON kind of its values.
func (f *Field) markUndeclared(kind string) {
	if f.Params == nil {
		f.Params = map[string]json.RawMessage{}
	}
	f.Params["meta"] = json.RawMessage(`{"` + metaKind + `":"` + kind + `"}`)
}

// UndeclaredKind returns the JSON kind of the values of a field that nothing declared when it was added, "" for other fields.
func (f *Field) UndeclaredKind() string { return gjson.GetBytes(f.Params["meta"], metaKind).String() }

// withoutMarks returns a parameter of a field without what RecordDeclared and markUndeclared record in it, nil if there is nothing else.
func withoutMarks(name string, raw json.RawMessage) json.RawMessage {
	rest, found := raw, false
	for _, path := range map[string][]string{"_meta": {metaTypes, metaKinds}, "meta": {metaKind}}[name] {
		if !gjson.GetBytes(rest, path).Exists() {
			continue
		}
		bare, err := sjson.DeleteBytes(rest, path)
		if err != nil {
			return raw
		}
		rest, found = bare, true
	}
	if !found {
		return raw
	}
	if gjson.GetBytes(rest, "tutti").Raw == "{}" {
		if bare, err := sjson.DeleteBytes(rest, "tutti"); err == nil {
			rest = bare
		}
	}
	if string(rest) == "{}" {
		return nil
	}
	return rest
}

// maxExact is the highest whole number up to which a double has every whole number.
const maxExact = 1 << 53

// inexactReason is a part of the reason of a whole number that a double may not have.
const inexactReason = "is a whole number beyond 2^53 in a field that nothing declares as integer"

// Inexact reports whether an error of a Checker is about a whole number that its field may change.
func Inexact(err error) bool { return err != nil && strings.Contains(err.Error(), inexactReason) }

// MayBeInexact reports whether a document has a number of as many digits in a row as a whole number that a double may change. Digests and
// UUIDs have such rows too, but not where a number begins.
func MayBeInexact(doc []byte) bool {
	const run, wordBytes, ones = core.LongNumber, 8, uint64(0x0101010101010101)
	for i := 0; i+wordBytes <= len(doc); i += wordBytes { // a run has all bytes of one of these words
		word := binary.LittleEndian.Uint64(doc[i : i+wordBytes])
		if word&(ones*0xF0) != ones*'0' || (word+ones*6)&(ones*0xF0) != ones*'0' {
			continue
		}
		begin, end := i, digits(doc, i)
		for begin > 0 && doc[begin-1]-'0' <= 9 {
			begin--
		}
		if end-begin >= run && (begin == 0 || bytes.IndexByte([]byte(" \t\r\n:,[-"), doc[begin-1]) >= 0) {
			return true
		}
		i += (end - i - 1) / wordBytes * wordBytes
	}
	return false
}

// inexact reports whether text is a whole number, without fraction and exponent, beyond those of which a double has every one.
func inexact(text []byte) bool {
	if len(text) < len("9007199254740992") {
		return false
	}
	n := text
	if n[0] == '-' {
		n = n[1:]
	}
	if digits(n, 0) != len(n) {
		return false
	}
	v, err := strconv.ParseUint(string(n), 10, 64)
	return err != nil || v > maxExact
}
