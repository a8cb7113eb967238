package draw

import (
	"encoding/json"
	"slices"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/searchtest/model"
)

// Mapping returns a mapping with a field of each of some types in "one", whose documents have at most one value of each, in "many", and in
// the elements of "parts"; those without filters by value are in "held". The numbers in "near" are close together, and include a negative zero.
func Mapping(types []string) *mapping.Field {
	fields := func(has func(string) bool) map[string]*mapping.Field {
		out := map[string]*mapping.Field{}
		for _, t := range types {
			if has(t) {
				out[t] = leafOf(mapping.Type(t))
			}
		}
		return out
	}
	within := func(t string) bool { return fieldtype.Of(t).Searchable() && t != "constant_keyword" }
	near := func(t string) bool { return t == "long" || t == "date" || fieldtype.Of(t).Fractional() }
	held := func(t string) bool {
		return !within(t) && t != "constant_keyword" && t != "join" && t != "alias" && t != "rank_features" && fieldtype.Of(t).Group != fieldtype.Container
	}
	alias := func(path string) *mapping.Field {
		return &mapping.Field{Type: "alias", Params: map[string]json.RawMessage{"path": json.RawMessage(Quoted(path))}}
	}
	keyword := func(name, value string) *mapping.Field {
		return &mapping.Field{Type: mapping.Keyword, Params: map[string]json.RawMessage{name: json.RawMessage(value)}}
	}
	root := mapping.NewRoot()
	root.Properties = map[string]*mapping.Field{
		"uid": {Type: mapping.Keyword},
		// Each is drawn as often as all others are.
		"lower": keyword("normalizer", `"lowercase"`), "short": keyword("ignore_above", "3"), "named": alias("many.keyword"),
		"one": {Type: mapping.Object, Properties: fields(within)}, "many": {Type: mapping.Object, Properties: fields(within)},
		"near": {Type: mapping.Object, Properties: fields(near)}, "held": {Type: mapping.Object, Properties: fields(held)},
		"parts": {Type: mapping.Nested, Properties: fields(within)},
		"kin":   {Type: mapping.Nested, Properties: map[string]*mapping.Field{"keyword": leafOf("keyword"), "date": leafOf("date")}},
	}
	below := map[string]*mapping.Field{"keyword": leafOf("keyword"), "long": leafOf("long"), "text": leafOf("text")}
	below["pieces"] = &mapping.Field{Type: mapping.Nested, Properties: map[string]*mapping.Field{"integer": leafOf("integer"), "keyword": leafOf("keyword")}}
	root.Properties["parts"].Properties["named"] = alias("parts.long")
	root.Properties["parts"].Properties["deep"] = &mapping.Field{Type: mapping.Nested, Properties: below}
	for name, t := range map[string]mapping.Type{"constant": "constant_keyword", "held-join": "join"} { // which no object has
		if slices.Contains(types, string(t)) {
			root.Properties[name] = leafOf(t)
		}
	}
	return root
}

// leafOf returns a field with the parameters that its type needs.
func leafOf(t mapping.Type) *mapping.Field {
	f := &mapping.Field{Type: t}
	if params := map[mapping.Type]string{
		"scaled_float": `{"scaling_factor":100}`, "constant_keyword": `{"value":"constant"}`, "token_count": `{"analyzer":"standard"}`,
		"aggregate_metric_double": `{"metrics":["min","max"],"default_metric":"max"}`, "join": `{"relations":{"a":"b"}}`, "dense_vector": `{"dims":2}`,
		"alias": `{"path":"uid"}`, "knn_vector": `{"dimension":2}`, "semantic_text": `{"inference_id":"i"}`,
	}[t]; params != "" {
		_ = json.Unmarshal([]byte(params), &f.Params) // it is valid
	}
	if t == "text" {
		f.Fields = map[string]*mapping.Field{"raw": {Type: mapping.Keyword}}
	}
	return f
}

// heldValues returns values of the types without filters by value, as JSON; nil for a type that no document of the suite has.
func heldValues(t mapping.Type) []string {
	return map[mapping.Type][]string{
		"version": {`"1.10.0"`, `"1.9.0-rc.1"`}, "binary": {`"AAEC"`}, "completion": {`"red green"`}, "token_count": {`"red green"`}, "murmur3": {`"a"`},
		"percolator": {`{"term":{"uid":"a"}}`}, "histogram": {`{"values":[0.5,1],"counts":[3,4]}`}, "aggregate_metric_double": {`{"min":1,"max":2.5}`},
		"join": {`"a"`, `{"name":"a"}`}, "geo_point": {`{"lat":1.5,"lon":2}`, `"1.5,2"`, `[2,1.5]`}, "geo_shape": {`{"type":"point","coordinates":[1,2]}`},
		"point": {`{"x":1,"y":2}`}, "shape": {`{"type":"point","coordinates":[1,2]}`}, "dense_vector": {`[1,2.5]`}, "sparse_vector": {`{"a":1.5}`},
		"rank_feature": {`1.5`}, "rank_features": {`{"a":1.5}`}, "counted_keyword": {`"a"`}, "annotated_text": {`"a"`}, "knn_vector": {`[1,2.5]`},
		"xy_point": {`{"x":1,"y":2}`}, "xy_shape": {`{"type":"point","coordinates":[1,2]}`},
		"integer_range": {`{"gte":1,"lt":5}`, `{"gt":-2147483648}`, `{"lte":3}`}, "long_range": {`{"gte":9007199254740993}`, `{"gt":1,"lte":9007199254740992}`},
		"float_range": {`{"gt":0.5,"lt":1.5}`, `{"gte":1.5}`}, "double_range": {`{"gt":0.1,"lt":0.3}`, `{"lte":0.1}`},
		"date_range": {`{"gte":"2024-03-05T10:20:30.123Z","lt":"2025-01-01T00:00:00.000Z"}`, `{"gt":1709634030123}`},
		"ip_range":   {`"10.0.0.0/8"`, `{"gt":"9.255.255.255","lte":"10.0.0.1"}`, `"2001:db8::/32"`},
	}[t]
}

// poolAt returns the pool of a field. The values for a keyword below a text include those of the text.
func poolAt(fields *model.FieldSet, name string) pool {
	f := fields.ByName[name]
	p := poolOf(f.Mapped.Type)
	if above, raw := fields.ByName[model.ParentOf(f.Path)]; raw && above.Mapped.Type == "text" {
		p.values = slices.Concat(p.values, poolOf("text").stored, poolOf("text").values)
	}
	if end, ranged := model.EndOf(f.Field); ranged {
		p = poolOf(mapping.Type(end.Type))
	}
	return p
}
