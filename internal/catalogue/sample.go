package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/rawjson"
)

// Documents reads documents of an index in any order, as the port index.Index does. The end of the stream is the first error of
// each, which Stream returns.
type Documents interface {
	Stream(ctx context.Context, alias string, req index.StreamRequest, each func([]index.Hit) error) error
}

// A sample has no more documents, and ends behind so many bytes of them.
const (
	sampleDocuments = 1000
	sampleBytes     = 4 << 20
)

// errSampled ends a sample that is large enough.
var errSampled = errors.New("the sample is large enough")

// severalValues returns the paths of the mapping of which a document of a sample of the index holds several values. Nested
// elements are several by their nature, and are left out.
func severalValues(ctx context.Context, d Documents, alias string, fields *fieldSet) (map[string]bool, error) {
	s := sample{fields: fields, several: map[string]bool{}}
	documents, bytes := 0, 0
	err := d.Stream(ctx, alias, index.StreamRequest{}, func(hits []index.Hit) error {
		for _, hit := range hits {
			s.object(hit.Source, 0, "")
			documents++
			if bytes += len(hit.Source); documents == sampleDocuments || bytes >= sampleBytes {
				return errSampled
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errSampled) {
		return nil, err
	}
	return s.several, nil
}

// Sampled returns the fields that introspection shows, with what a sample of the documents says of them.
func (m *Model) Sampled(ctx context.Context, d Documents) ([]core.CatalogueField, error) {
	found, err := severalValues(ctx, d, m.definition.Index, m.whole)
	if err != nil {
		return nil, err
	}
	fields := slices.Clone(m.catalogue.Fields)
	for i := range fields {
		fields[i].MultiValued = m.fields.byName[fields[i].Name].several(found, m.whole)
	}
	return fields, nil
}

// sample notes which fields have several values.
type sample struct {
	fields  *fieldSet
	several map[string]bool
}

// object notes those below the object at doc[at], whose path ends with a dot, or is "".
func (s sample) object(doc []byte, at int, path string) {
	rawjson.Members(doc, at, func(name []byte, escaped bool, v rawjson.Span) bool {
		text := string(name)
		if escaped && json.Unmarshal(append(append([]byte{'"'}, name...), '"'), &text) != nil {
			return true
		}
		s.value(doc, v, path+text)
		return true
	})
}

// value notes those at and below a value of a path.
func (s sample) value(doc []byte, v rawjson.Span, path string) {
	f, known := s.fields.byName[path]
	if !known && doc[v.Start] != '{' && doc[v.Start] != '[' {
		return
	}
	n := 0
	rawjson.Items(doc, v, func(item rawjson.Span) bool {
		if doc[item.Start] == 'n' {
			return true
		}
		n++
		if doc[item.Start] == '{' && (!known || f.mapped != nil && f.mapped.Container()) {
			s.object(doc, item.Start, path+".")
		}
		return true
	})
	if n > 1 && known && severable(mapping.Type(f.Type)) {
		s.several[path] = true
	}
}

// severable reports whether several values of a type in a document are several values of the field: a point is a list of numbers,
// and nested elements are several by their nature.
func severable(t mapping.Type) bool {
	switch t {
	case mapping.Object, "keyword", "constant_keyword", "counted_keyword", "wildcard", "text", "match_only_text", "search_as_you_type",
		"string", "ip", "version", "date", "date_nanos", "binary", "boolean", "flattened", "byte", "short", "integer", "long",
		"unsigned_long", "half_float", "float", "double", "scaled_float":
		return true
	default:
		return false
	}
}

// several reports whether the sample found several values of a field: for a multi-field, of the field that it belongs to.
func (f field) several(found map[string]bool, whole *fieldSet) bool {
	if found[f.path] {
		return true
	}
	dot := strings.LastIndexByte(f.path, '.')
	if dot < 0 || !found[f.path[:dot]] {
		return false
	}
	above := whole.byName[f.path[:dot]]
	return above.mapped != nil && !above.mapped.Container()
}
