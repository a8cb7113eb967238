package mapping

import (
	"encoding/json"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
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

// kindNumber is the metaKind of numbers, the only one that is recorded.
const kindNumber = "number"

// NewUndeclared returns a field of numbers that records in its meta that nothing declares it.
func NewUndeclared() *Field {
	return &Field{Type: Double, Params: map[string]json.RawMessage{"meta": json.RawMessage(`{"` + metaKind + `":"` + kindNumber + `"}`)}}
}

// Undeclared reports whether NewUndeclared has made the field.
func (f *Field) Undeclared() bool {
	return gjson.GetBytes(f.Params["meta"], metaKind).String() == kindNumber
}

// withoutMarks returns a parameter of a field without what RecordDeclared and NewUndeclared record in it, nil if there is nothing else.
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
