package mapping

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// SettingArrayObjects bounds the objects in all lists of objects of one document, nested or not, on engines that have it; 50,000 by default.
const SettingArrayObjects = "index.mapping.array_objects.limit"

// SettingNestedParents bounds the nested fields that have nested fields below them, on engines that have it; 50 by default.
const SettingNestedParents = "index.mapping.nested_parents.limit"

// Limits bound the mapping that documents can create, and a document, as Elasticsearch's settings index.mapping.* of the same names do.
type Limits struct {
	Fields int `json:"totalFields"`
	Nested int `json:"nestedFields"`
	Depth  int `json:"depth"`
	// Objects bounds the objects in nested fields of one document; 0 is no bound, as in embedded indices of earlier releases.
	Objects int `json:"nestedObjects"`
	// AllTerms is set for OpenSearch: see document.Checker.
	AllTerms bool `json:"-"`
}

// DefaultLimits returns the limits of an index that tutti makes, unless index.limits says otherwise.
func DefaultLimits() Limits { return Limits{Fields: 5000, Nested: 200, Depth: 20, Objects: 100_000} }

// EngineLimits returns the limits of an index of Elasticsearch whose settings name none.
func EngineLimits() Limits { return Limits{Fields: 1000, Nested: 50, Depth: 20, Objects: 10_000} }

// limit describes one of Limits.
type limit struct {
	// setting is its name in index.mapping.<setting>.limit, key its key in the configuration, "" for none.
	setting, key string
	// reason begins the engine's reason of a document that exceeds it, up to the number.
	reason string
	what   string
	value  func(l *Limits) *int
}

func limits() []limit {
	return []limit{
		{"total_fields", "index.limits.fields", "Limit of total fields [", "fields", func(l *Limits) *int { return &l.Fields }},
		{"nested_fields", "index.limits.nestedFields", "Limit of nested fields [", "fields of lists of objects", func(l *Limits) *int { return &l.Nested }},
		{"depth", "", "Limit of mapping depth [", "levels of fields", func(l *Limits) *int { return &l.Depth }},
		{
			"nested_objects", "index.limits.nestedObjects", "The number of nested documents has exceeded the allowed limit of [",
			"objects in the lists of one document", func(l *Limits) *int { return &l.Objects },
		},
	}
}

// With returns the limits, with those that the settings beside a user's mapping have, else the defaults that an engine returns beside them.
func (l Limits) With(body json.RawMessage) Limits {
	for _, each := range limits() {
		for _, path := range []string{"index.mapping.%s.limit", "mapping.%s.limit", `index\.mapping\.%s\.limit`, `mapping\.%s\.limit`} {
			path = fmt.Sprintf(path, each.setting)
			v := cmp.Or(gjson.GetBytes(body, "settings."+path).Int(), gjson.GetBytes(body, "template.settings."+path).Int(),
				gjson.GetBytes(body, "defaults."+path).Int())
			if v > 0 {
				*each.value(&l) = int(v)
				break
			}
		}
	}
	return l
}

// Lower returns the lower one of each limit.
func (l Limits) Lower(other Limits) Limits {
	for _, each := range limits() {
		*each.value(&l) = min(*each.value(&l), *each.value(&other))
	}
	return l
}

// Settings returns the limits as flat settings of an index, without that of the depth, which is the engine's.
func (l Limits) Settings() map[string]any {
	settings := map[string]any{}
	for _, each := range limits() {
		if each.key != "" {
			settings["index.mapping."+each.setting+".limit"] = *each.value(&l)
		}
	}
	return settings
}

// Exceeded returns a message with the limit that tree exceeds, or "".
func (l Limits) Exceeded(tree *Field) string {
	fields, nested, depth := tree.count(0)
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

// count counts the fields below f, of which nested are lists of objects, and returns the levels of the deepest one; level is that of f. It
// costs less than All.
func (f *Field) count(level int) (fields, nested, depth int) {
	depth = level
	for _, children := range []map[string]*Field{f.Properties, f.Fields} {
		for name, child := range children {
			below, lists, deepest := child.count(level + 1 + strings.Count(name, "."))
			fields, nested, depth = fields+1+below, nested+lists, max(depth, deepest)
			if child.Type == Nested {
				nested++
			}
		}
	}
	return fields, nested, depth
}

// ExceededBy returns a message if a document has n objects in nested fields, more than its limit, or "".
func (l Limits) ExceededBy(n int) string {
	if l.Objects == 0 || n <= l.Objects {
		return ""
	}
	return fmt.Sprintf("The number of nested documents has exceeded the allowed limit of [%d]. This limit can be set by changing the "+
		"[index.mapping.nested_objects.limit] index level setting.", l.Objects)
}

// LimitHint returns what to do about a document that an engine rejected for a reason, "" where that is not one of its limits.
func LimitHint(reason string) string {
	objects := limit{
		setting: "array_objects", key: "index.limits.nestedObjects", what: "objects in the lists of one document",
		reason: "The total number of objects across all arrays in the document has exceeded the allowed limit of [",
	}
	parents := limit{
		setting: "nested_parents", key: "index.limits.nestedFields", what: "lists of objects with lists of objects in them",
		reason: "Limit of nested parents [",
	}
	for _, each := range append(limits(), objects, parents) {
		if _, rest, found := strings.Cut(reason, each.reason); found {
			number, _, _ := strings.Cut(rest, "]")
			return each.hint(number)
		}
	}
	return ""
}

func (l limit) hint(number string) string {
	text := "the index takes at most " + number + " " + l.what + ": leave out what is not searched, or map it with enabled: false in the mapping file"
	if l.key == "" {
		return text + ", then retry"
	}
	return text + "; or raise " + l.key + " and rebuild the index, or the setting index.mapping." + l.setting +
		".limit where the mapping file or an index of Elasticsearch has it; then retry"
}
