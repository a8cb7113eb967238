package mapping

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Change is how an index can get what a wanted mapping says about a field.
type Change string

// Changes.
const (
	// ChangeAdd is a field that the index lacks: it is added at the next start.
	ChangeAdd Change = "add"
	// ChangeUpdate is a field with other parameters that can be changed: that is done at the next start.
	ChangeUpdate Change = "update"
	// ChangeRebuild is a field with another type, or with other parameters that cannot be changed.
	ChangeRebuild Change = "rebuild"
	// ChangeNone is a field that only the index has: documents may have added it, and it stays.
	ChangeNone Change = "none"
)

// Difference is a field about which a wanted mapping and that of an index differ.
type Difference struct {
	// Field is the dotted path of the field, or RootPath.
	Field string
	// Wanted and Live are the type and the parameters, "" where there is no such field.
	Wanted, Live string
	Change       Change
}

// RootPath is the Field of a Difference in the parameters of the mapping itself.
const RootPath = "(mapping)"

// Compare returns how the mapping of an index differs from a wanted one, parents first and siblings by name. Of the fields that only one
// has it returns those that the wanted mapping has, and the topmost of those that the index has. Parameters with their default values
// count as absent.
func Compare(wanted, live *Field) []Difference {
	c := comparison{}
	c.container("", wanted, live)
	return c.found
}

// Contradiction describes what an index cannot get without a rebuild, for an error message: the first such field, and the number of
// others. It returns "" when there is none.
func Contradiction(found []Difference) string {
	text, others := "", 0
	for _, d := range found {
		switch {
		case d.Change != ChangeRebuild:
		case text == "":
			text = fmt.Sprintf("the field %q is %s in the index and %s in the mapping", d.Field, d.Live, d.Wanted)
		default:
			others++
		}
	}
	if others > 0 {
		text += fmt.Sprintf(", and %d more differ", others)
	}
	return text
}

// comparison collects differences.
type comparison struct{ found []Difference }

func (c *comparison) add(path string, wanted, live string, change Change) {
	if path == "" {
		path = RootPath
	}
	c.found = append(c.found, Difference{path, wanted, live, change})
}

// container compares the parameters and the fields of two containers of one type. Parameters that only the index has stay.
func (c *comparison) container(path string, wanted, live *Field) {
	given := paramsOf(wanted)
	has := paramsOf(live)
	maps.DeleteFunc(has, func(name string, _ any) bool { _, is := given[name]; return !is })
	c.params(path, wanted, live, given, has)
	c.children(path, wanted.Properties, live.Properties)
}

func (c *comparison) children(path string, wanted, live map[string]*Field) {
	all := maps.Clone(live)
	if all == nil {
		all = map[string]*Field{}
	}
	maps.Copy(all, wanted)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c.field(join(path, name), wanted[name], live[name])
	}
}

func (c *comparison) field(path string, wanted, live *Field) {
	switch {
	case wanted == nil:
		c.add(path, "", describe(live), ChangeNone)
	case live == nil:
		c.add(path, describe(wanted), "", ChangeAdd)
		for below, f := range wanted.All() {
			c.add(join(path, below), describe(f), "", ChangeAdd)
		}
	case wanted.Type != live.Type:
		c.add(path, describe(wanted), describe(live), ChangeRebuild)
	case wanted.Container():
		c.container(path, wanted, live)
	default:
		c.params(path, wanted, live, paramsOf(wanted), paramsOf(live))
		c.children(path, wanted.Fields, live.Fields)
	}
}

// params compares the parameters of two fields of one type.
func (c *comparison) params(path string, wanted, live *Field, given, has map[string]any) {
	change := Change("")
	for _, side := range []map[string]any{given, has} {
		for name := range side {
			switch {
			case reflect.DeepEqual(given[name], has[name]):
			case !updatable(name, wanted.Type, path == "", given[name]):
				change = ChangeRebuild
			case change == "":
				change = ChangeUpdate
			}
		}
	}
	if change != "" {
		c.add(path, describeWith(wanted, given), describeWith(live, has), change)
	}
}

// updatable reports whether Elasticsearch accepts another value of a parameter of an existing field, according to its reference of
// the mapping parameters.
func updatable(name string, of Type, root bool, value any) bool {
	switch name {
	case "dynamic", "meta", "copy_to", "coerce", "ignore_malformed", "ignore_above", "search_analyzer", "search_quote_analyzer",
		"eager_global_ordinals", "fielddata", "fielddata_frequency_filter", "depth_limit", "split_queries_on_whitespace",
		"max_input_length", "boost":
		return true
	case "norms":
		return of == "text" && value == "false" // they can be switched off only
	case "_meta", "runtime", "dynamic_templates", "dynamic_date_formats", "date_detection", "numeric_detection":
		return root
	default:
		return false
	}
}

// paramsOf returns the parameters of a field that do not have their default values, with dynamic as one of them. Scalars are texts,
// and a list of one value is that value, because engines return them in either form.
func paramsOf(f *Field) map[string]any {
	out := make(map[string]any, len(f.Params)+1)
	for name, raw := range f.Params {
		var value any
		if raw = withoutMarks(name, raw); raw == nil {
			continue
		}
		if err := json.Unmarshal(raw, &value); err != nil {
			value = string(raw)
		}
		if value = plain(value); value != defaultParam(name, f.Type) {
			out[name] = value
		}
	}
	if f.Dynamic != "" {
		out["dynamic"] = f.Dynamic
	}
	return out
}

// plain returns a JSON value with texts for its scalars, and a single value for a list of one.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
		return v
	case []any:
		if len(v) == 1 {
			return plain(v[0])
		}
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case float64:
		return strings.TrimSuffix(fmt.Sprintf("%f", v), ".000000")
	default:
		return fmt.Sprint(v)
	}
}

// defaultParam returns the default value of a parameter, "" for those without one.
func defaultParam(name string, of Type) any {
	switch name {
	case "index", "doc_values", "coerce", "enabled", "date_detection", "subobjects":
		return "true"
	case "store", "ignore_malformed", "eager_global_ordinals", "fielddata", "numeric_detection", "include_in_parent", "include_in_root":
		return "false"
	case "norms":
		return fmt.Sprint(of == "text")
	default:
		return ""
	}
}

// describe returns the type and the parameters of a field in words.
func describe(f *Field) string { return describeWith(f, paramsOf(f)) }

func describeWith(f *Field, params map[string]any) string {
	words := []string{string(f.Type)}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		raw, err := json.Marshal(params[name])
		if err != nil {
			continue
		}
		words = append(words, name+"="+strings.Trim(string(raw), `"`))
	}
	return strings.Join(words, " ")
}
