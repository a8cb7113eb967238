package view

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"tutti/internal/core"
	"tutti/internal/filter/fieldtype"
	"tutti/internal/filter/query"
	"tutti/internal/index"
)

const (
	// maxValueFields limits the fields of one Values, maxValueSearches its searches: one, unless the engine rejects a field.
	maxValueFields   = 200
	maxValueSearches = 16
	// maxValueBytes is the length of a value above which it is left out: 100 values of the longest kind would be megabytes.
	maxValueBytes = 1000
	// timeLayout is the engine's default date format.
	timeLayout = "2006-01-02T15:04:05.000Z"
)

// valueFacet is the facet of one field of Values.
type valueFacet struct {
	name  string
	facet index.Facet
}

// Values returns by field, for some fields or all for nil, the values of the documents that the caller sees: of keywords and booleans the most frequent ones, at most
// most of them, with the number of documents, of numbers and dates the bounds. Nested elements count as in facets. Other fields are not
// in the result; those that the index cannot count have only a note. The errors are those of Search, if the whole search fails.
func (v *View) Values(ctx context.Context, fields []string, most int) (map[string]core.FieldValues, error) {
	found := map[string]core.FieldValues{}
	var wanted []valueFacet
	for _, described := range v.model.Catalogue().Fields {
		field, known := v.Field(described.Name)
		facet, of := index.Facet{Field: field}, fieldtype.Of(field.Type)
		switch {
		case !known, fields != nil && !slices.Contains(fields, described.Name):
			continue
		case of.Group == fieldtype.Exact, of.Group == fieldtype.Boolean:
			facet.Buckets = &index.Buckets{Max: most}
		case of.Ordered():
			facet.Stats = true
		default:
			continue
		}
		switch {
		case v.Uncounted(field) != "":
			found[described.Name] = core.FieldValues{Note: "not counted: " + v.Uncounted(field)}
		case len(wanted) == maxValueFields:
			found[described.Name] = core.FieldValues{Note: fmt.Sprintf("not counted: only the first %d fields are", maxValueFields)}
		default:
			wanted = append(wanted, valueFacet{described.Name, facet})
		}
	}
	searches := maxValueSearches
	if err := v.countValues(ctx, wanted, &searches, found); err != nil {
		return nil, err
	}
	return found, nil
}

// countValues adds the values of wanted to found. It halves the list if the engine rejects it, to find the fields that it rejects.
func (v *View) countValues(ctx context.Context, wanted []valueFacet, searches *int, found map[string]core.FieldValues) error {
	if len(wanted) == 0 {
		return nil
	}
	if *searches--; *searches < 0 {
		noteAll(wanted, "not counted: the index rejects too many fields", found)
		return nil
	}
	facets := make([]index.Facet, len(wanted))
	for i := range wanted {
		facets[i] = wanted[i].facet
	}
	results, err := v.Search(ctx, KindFacets, []index.SearchRequest{{Facets: facets}})
	switch half := len(wanted) / 2; {
	case err == nil:
		for i := range wanted {
			found[wanted[i].name] = valuesOf(wanted[i].facet.Field.Type, &results[0].Facets[i])
		}
		return nil
	case core.CodeOf(err) != core.CodeInvalid:
		return err
	case half > 0:
		if err := v.countValues(ctx, wanted[:half], searches, found); err != nil {
			return err
		}
		return v.countValues(ctx, wanted[half:], searches, found)
	default:
		noteAll(wanted, "not counted: "+core.MessageOf(err), found)
		return nil
	}
}

func noteAll(wanted []valueFacet, note string, found map[string]core.FieldValues) {
	for _, w := range wanted {
		found[w.name] = core.FieldValues{Note: note}
	}
}

// Uncounted returns why a field has no facet and no sort although its type has, "" if it has (catalogue.Model). One such field would fail the
// whole search.
func (v *View) Uncounted(field query.Field) string { return v.model.Uncounted(field.Path) }

// valuesOf returns the values in the result of a facet.
func valuesOf(fieldType string, r *index.FacetResult) core.FieldValues {
	if fieldtype.Of(fieldType).Ordered() {
		if r.Stats.Count == 0 || math.IsInf(r.Stats.Min, 0) || math.IsInf(r.Stats.Max, 0) {
			return core.FieldValues{}
		}
		return core.FieldValues{Min: bound(fieldType, r.Stats.Min), Max: bound(fieldType, r.Stats.Max)}
	}
	values, long := make([]core.FieldValue, 0, len(r.Buckets)), 0
	for _, b := range r.Buckets {
		var value any = b.Key
		if fieldType == "boolean" {
			value = b.Key == "true"
		}
		if len(b.Key) > maxValueBytes {
			long++
			continue
		}
		values = append(values, core.FieldValue{Value: value, Count: b.Count})
	}
	of := core.FieldValues{Values: values}
	if long > 0 {
		of.Note = fmt.Sprintf("values longer than %d bytes are left out: %d", maxValueBytes, long)
	}
	return of
}

func bound(fieldType string, of float64) any {
	if query.Dated(fieldType) {
		return time.UnixMilli(int64(of)).UTC().Format(timeLayout)
	}
	return of
}
