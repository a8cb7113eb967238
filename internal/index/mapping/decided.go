package mapping

import (
	"encoding/json"
	"maps"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// metaKinds is the path in the _meta of a mapping of the types that a rebuild has decided, by dotted path.
const metaKinds = "tutti.kinds"

// RecordKinds records in the parameters of a mapping's root the types that a rebuild has decided: fields get them, whatever their first value
// is, and values of another JSON kind are rejected. Of objects a type is only recorded to reject other values.
func (f *Field) RecordKinds(decided *Types) {
	if decided.Len() == 0 {
		return
	}
	types := make(map[string]Type, decided.Len())
	for path, d := range decided.All() {
		types[path] = d.Type
	}
	if raw, err := json.Marshal(types); err == nil {
		f.setKinds(raw)
	}
}

// KeepDecided records, where f writes its meta, what live has recorded by RecordDeclared and RecordKinds.
func (f *Field) KeepDecided(live *Field) {
	meta, writes := f.Params["_meta"]
	if !writes {
		return
	}
	if live.UsesDeclared() {
		f.RecordDeclared(meta)
	}
	if raw := gjson.GetBytes(live.Params["_meta"], metaKinds).Raw; raw != "" {
		f.setKinds([]byte(raw))
	}
}

func (f *Field) setKinds(raw []byte) {
	meta := f.Params["_meta"]
	if !gjson.ParseBytes(meta).IsObject() {
		meta = json.RawMessage(`{}`)
	}
	recorded, err := sjson.SetRawBytes(meta, metaKinds, raw)
	if err != nil {
		return
	}
	if f.Params = maps.Clone(f.Params); f.Params == nil {
		f.Params = map[string]json.RawMessage{}
	}
	f.Params["_meta"] = recorded
}

// RecordedKinds returns the types that a mapping, in JSON, records by RecordKinds, nil for none.
func RecordedKinds(raw json.RawMessage) map[string]Type {
	var types map[string]Type
	if err := json.Unmarshal([]byte(gjson.GetBytes(raw, "_meta."+metaKinds).Raw), &types); err != nil {
		return nil
	}
	return types
}

// DecidedTypes returns a function of paths for a document that adds fields to f, the root: it returns the type of a path, "" if none is decided,
// and whether a rebuild has decided it. What f records by RecordKinds wins over what is declared.
func (f *Field) DecidedTypes(declared *Types) func(path string) (t Type, counted bool) {
	recorded := gjson.GetBytes(f.Params["_meta"], metaKinds)
	return func(path string) (t Type, counted bool) {
		recorded.ForEach(func(key, value gjson.Result) bool {
			if counted = key.String() == path; counted {
				t = Type(value.String())
			}
			return !counted
		})
		if counted {
			return t, true
		}
		d, _ := declared.Lookup(path)
		return d.Type, false
	}
}
