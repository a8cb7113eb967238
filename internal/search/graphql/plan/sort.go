package plan

import (
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
	"tutti/internal/search/view"
)

// sortKeys reads the sort keys and adds identity as the last one, so that the order is total.
func sortKeys(args request.Arguments, v *view.View, identity index.Sort) ([]index.Sort, *output.Error) {
	var keys []index.Sort
	for i, item := range args.List("sort") {
		if item.Type == gjson.Null || sortsByScore(v, item) {
			continue
		}
		key, bad := sortKey(v, args, i, item)
		if bad != nil {
			return nil, bad
		}
		keys = append(keys, key)
		if key.Field.Path == identity.Field.Path {
			return keys, nil
		}
	}
	return append(keys, identity), nil
}

// sortKey reads one sort key.
func sortKey(v *view.View, args request.Arguments, i int, item gjson.Result) (index.Sort, *output.Error) {
	wrong := func(format string, with ...any) (index.Sort, *output.Error) {
		return index.Sort{}, args.Invalid("sort", fmt.Sprintf("[%d]: ", i)+fmt.Sprintf(format, with...))
	}
	name, order, mode, missing := item.Get("fieldName").String(), item.Get("order").String(), item.Get("mode").String(), item.Get("missing").String()
	key := index.Sort{Descending: order == "desc", Mode: mode}
	// An explicit ascending order has missing values first, as clients of Arranger expect.
	key.MissingFirst = missing == "first" || missing == "" && order == "asc"
	field, known := v.Field(name)
	switch {
	case known:
		key.Field = field
	case name == "_id":
		key.Field = query.Field{Path: "_id", Type: "keyword"}
		return key, nil
	default:
		if _, container := v.Model().Field(name); container {
			return wrong("%q is an object, not a value", name)
		}
		near := ""
		if meant := core.Suggest(name, v.Model().Names()); meant != "" {
			near = fmt.Sprintf(", did you mean %q?", meant)
		}
		return wrong("there is no field %q%s", name, near)
	}
	switch {
	case !sortable(field.Type):
		return wrong("type %s, the type of %q, is not sortable", field.Type, name)
	case !query.Keyed(field.Type) && mode != "" && mode != "min" && mode != "max":
		return wrong("mode %s is for numeric fields, but %q has type %s", mode, name, field.Type)
	}
	return key, nil
}

// sortable reports whether documents can be sorted by values of a type.
func sortable(fieldType string) bool {
	return !slices.Contains([]string{
		"text", "match_only_text", "search_as_you_type", "annotated_text", "binary", "geo_point", "geo_shape", "shape", "point",
		"completion", "alias", "dense_vector", "sparse_vector", "rank_feature", "rank_features", "join", "percolator",
	}, fieldType) && !endsInRange(fieldType)
}

func endsInRange(fieldType string) bool {
	const end = "_range"
	return len(fieldType) > len(end) && fieldType[len(fieldType)-len(end):] == end
}

// scoreKey is the sort key that table components of Arranger use if a column of counts is selected.
const scoreKey = "_score"

// sortsByScore reports whether a sort key is the score. Documents are not scored: all have the same score, so the other keys
// decide.
func sortsByScore(v *view.View, item gjson.Result) bool {
	if item.Get("fieldName").String() != scoreKey {
		return false
	}
	_, own := v.Field(scoreKey)
	return !own
}
