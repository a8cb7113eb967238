package mapping

import (
	"encoding/json"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// Policies for fields that a mapping lacks.
const (
	// NewFieldsAdd adds a field with the type of its first value (document.Derive).
	NewFieldsAdd = "add"
	// NewFieldsIgnore keeps the value in the document, where nothing finds it.
	NewFieldsIgnore = "ignore"
	// NewFieldsReject rejects the document.
	NewFieldsReject = "reject"
)

// metaNewFields is the path of the recorded policy in the _meta of a mapping: engines have no setting that says the same.
const metaNewFields = "tutti.newFields"

// RecordedNewFields returns the policy that the root of a mapping records, "" for none.
func (f *Field) RecordedNewFields() string {
	return gjson.GetBytes(f.Params["_meta"], metaNewFields).String()
}

// RecordNewFields records a policy in the parameters of a mapping's root. meta is the _meta before, nil for none.
func (f *Field) RecordNewFields(meta json.RawMessage, policy string) {
	f.recordMeta(meta, metaNewFields, policy)
}

// recordMeta records a value in the parameters of a mapping's root. meta is the _meta before, nil for none.
func (f *Field) recordMeta(meta json.RawMessage, path, value string) {
	if !gjson.ParseBytes(meta).IsObject() {
		meta = json.RawMessage(`{}`)
	}
	if recorded, err := sjson.SetBytes(meta, path, value); err == nil {
		meta = recorded
	}
	if f.Params == nil {
		f.Params = map[string]json.RawMessage{}
	}
	f.Params["_meta"] = meta
}

// DynamicOf returns the setting of an object under a policy.
func DynamicOf(policy string) string {
	if policy == NewFieldsIgnore {
		return DynamicFalse
	}
	return DynamicStrict // new fields are added before a document that has them, or never
}
