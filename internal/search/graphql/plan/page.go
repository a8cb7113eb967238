package plan

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"tutti/internal/filter/query"
	"tutti/internal/index"
	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/request"
)

// DefaultFirst is the default page size.
const DefaultFirst = 10

// page holds the arguments of hits.
type page struct {
	filter  *query.Node
	request index.HitsRequest
	counts  bool
}

// check rejects pages that engines cannot return.
func (g *page) check(args request.Arguments) *output.Error {
	first, offset := g.request.Size, g.request.From
	switch {
	case first < 0:
		return args.Invalid("first", "is negative")
	case offset < 0:
		return args.Invalid("offset", "is negative")
	case offset > 0 && g.request.After != nil:
		return args.Invalid("offset", "and searchAfter exclude each other")
	case first+offset > index.MaxWindow:
		return args.Invalid("offset", fmt.Sprintf(
			"plus first is more than %d documents: continue with the searchAfter of the last edge", index.MaxWindow,
		))
	default:
		return nil
	}
}

// readSearchAfter reads the cursor of a page: the searchAfter of an edge in the same order.
func readSearchAfter(args request.Arguments, keys []index.Sort) ([]json.RawMessage, *output.Error) {
	v := args.Value("searchAfter")
	if !v.Exists() {
		return nil, nil
	}
	items := v.Array()
	if !v.IsArray() || len(items) != len(keys) {
		return nil, args.Invalid("searchAfter", fmt.Sprintf(
			"is not the searchAfter of an edge in this order, which has %d values including the tie-breaker", len(keys),
		))
	}
	values := make([]json.RawMessage, len(items))
	for i, item := range items {
		if item.IsObject() || item.IsArray() {
			return nil, args.Invalid("searchAfter", "must contain only scalar values")
		}
		values[i] = json.RawMessage(item.Raw)
		if item.Type == gjson.String && query.Keyed(keys[i].Field.Type) && output.UnsafeInteger([]byte(item.Str)) {
			values[i] = json.RawMessage(item.Str)
		}
	}
	return values, nil
}
