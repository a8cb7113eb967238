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
)

// Documents reads documents of an index in any order, as the port index.Index does. The stream ends at the first error of each,
// which Stream returns.
type Documents interface {
	Stream(ctx context.Context, alias string, req index.StreamRequest, each func([]index.Hit) error) error
}

// Limits of a sample: documents, and bytes after which it ends.
const (
	sampleDocuments = 1000
	sampleBytes     = 4 << 20
)

// errSampled ends a sample that is large enough.
var errSampled = errors.New("the sample is large enough")

// sampleOf reads a sample of the documents of an index.
func sampleOf(ctx context.Context, d Documents, alias string, fields *fieldSet) (sample, error) {
	s := sample{fields: fields, multiValued: map[string]bool{}}
	bytes := 0
	err := d.Stream(ctx, alias, index.StreamRequest{}, func(hits []index.Hit) error {
		for _, hit := range hits {
			s.object(hit.Source, "")
			s.documents++
			if bytes += len(hit.Source); s.documents == sampleDocuments || bytes >= sampleBytes {
				s.full = true
				return errSampled
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errSampled) {
		return sample{}, err
	}
	return s, nil
}

// Sampled returns the fields of the introspection, updated by a sample of the documents.
func (m *Model) Sampled(ctx context.Context, d Documents) ([]core.CatalogueField, error) {
	s, err := sampleOf(ctx, d, m.definition.Index, m.whole)
	if err != nil {
		return nil, err
	}
	fields := slices.Clone(m.catalogue.Fields)
	for i := range fields {
		fields[i].MultiValued = m.fields.byName[fields[i].Name].multiValued(s.multiValued, m.whole)
	}
	return fields, nil
}

// sample is the result of sampling the documents of an index.
type sample struct {
	fields *fieldSet
	// several are the mapping paths with several values in a document, except nested ones, which always have several elements.
	multiValued map[string]bool
	// documents is the number of documents read; full is set if there may be more.
	documents int
	full      bool
}

// object records the fields below an object. path is "" or ends with a dot. Other values have no fields.
func (s *sample) object(raw json.RawMessage, path string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return
	}
	for name, value := range members {
		s.value(value, path+name)
	}
}

// value records a value and the fields below it.
func (s *sample) value(raw json.RawMessage, path string) {
	f, known := s.fields.byName[path]
	if !known && raw[0] != '{' && raw[0] != '[' {
		return
	}
	all := items(nil, raw)
	if len(all) > 1 && known && canBeMultiValued(mapping.Type(f.Type)) {
		s.multiValued[path] = true
	}
	for _, item := range all {
		if item[0] == '{' && (!known || f.mapped != nil && f.mapped.Container()) {
			s.object(item, path+".")
		}
	}
}

// items appends the items of an array and of the arrays within it, without nulls. Any other value is one item.
func items(all []json.RawMessage, raw json.RawMessage) []json.RawMessage {
	switch raw[0] {
	case 'n':
		return all
	case '[':
		var elements []json.RawMessage
		if json.Unmarshal(raw, &elements) != nil {
			return all
		}
		for _, element := range elements {
			all = items(all, element)
		}
		return all
	default:
		return append(all, raw)
	}
}

// canBeMultiValued reports whether several JSON values of a type are several values of the field. A point is a list of numbers,
// and nested elements are always several.
func canBeMultiValued(t mapping.Type) bool {
	switch t {
	case mapping.Object, "keyword", "constant_keyword", "counted_keyword", "wildcard", "text", "match_only_text", "search_as_you_type",
		"string", "ip", "version", "date", "date_nanos", "binary", "boolean", "flattened", "byte", "short", "integer", "long",
		"unsigned_long", "half_float", "float", "double", "scaled_float":
		return true
	default:
		return false
	}
}

// multiValued reports whether the sample found several values of a field; for a multi-field, of its parent.
func (f field) multiValued(found map[string]bool, whole *fieldSet) bool {
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
