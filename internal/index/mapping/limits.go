package mapping

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// Limits bound the mapping that documents can create, as Elasticsearch's settings index.mapping.* of the same names do.
type Limits struct {
	Fields int `json:"totalFields"`
	Nested int `json:"nestedFields"`
	Depth  int `json:"depth"`
}

// LimitsOf returns the limits in the settings beside a user's mapping, by default Elasticsearch's.
func LimitsOf(body json.RawMessage) Limits {
	return Limits{
		Fields: setting(body, "total_fields", 1000),
		Nested: setting(body, "nested_fields", 50),
		Depth:  setting(body, "depth", 20),
	}
}

func setting(body json.RawMessage, name string, otherwise int) int {
	for _, path := range []string{"index.mapping.%s.limit", "mapping.%s.limit", `index\.mapping\.%s\.limit`} {
		if v := gjson.GetBytes(body, "settings."+fmt.Sprintf(path, name)); v.Int() > 0 {
			return int(v.Int())
		}
	}
	return otherwise
}

// Exceeded returns a message with the limit that tree exceeds, or "".
func (l Limits) Exceeded(tree *Field) string {
	fields, nested, depth := 0, 0, 0
	for path, f := range tree.All() {
		fields++
		depth = max(depth, 1+strings.Count(path, "."))
		if f.Type == Nested {
			nested++
		}
	}
	switch {
	case fields > l.Fields:
		return fmt.Sprintf("Limit of total fields [%d] has been exceeded", l.Fields)
	case nested > l.Nested:
		return fmt.Sprintf("Limit of nested fields [%d] has been exceeded", l.Nested)
	case depth > l.Depth:
		return fmt.Sprintf("Limit of mapping depth [%d] has been exceeded", l.Depth)
	default:
		return ""
	}
}
