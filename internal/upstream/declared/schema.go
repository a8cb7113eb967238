package declared

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/internal/core/datamodel"
	"tutti/internal/index/mapping"
)

const (
	// maxLevels is the number of names in a path up to which a schema is read: engines have no deeper fields.
	maxLevels = 20
	// maxVisits bounds the subschemas of one schema that are read, with repetitions by references.
	maxVisits = 100_000
	// maxSame is how often a reference is followed inside itself.
	maxSame = 2
	// maxNesting bounds subschemas that apply to one path, one inside another.
	maxNesting = 200
)

// Schema declares what a JSON Schema says about the type of each path: by type and format, in properties, in the items of arrays, in the
// alternatives of allOf, anyOf, oneOf, then and else, and behind references within the schema. Names that it matches by a pattern, or does
// not name, are not declared. source names the schema in messages.
func Schema(b *mapping.TypesBuilder, schema []byte, source string) {
	r := &reader{to: b, root: gjson.ParseBytes(schema), source: source, active: map[string]int{}}
	r.siblings = !legacy(r.root.Get("$schema").String())
	r.read(r.root, "", 0, 0)
}

// Source names a version of an analysis type in messages.
func Source(t datamodel.AnalysisTypeRef) string { return t.Name + ":" + strconv.Itoa(t.Version) }

// legacy reports whether in a draft of JSON Schema a reference replaces what is beside it. It is so up to draft 7, the default.
func legacy(draft string) bool {
	return draft == "" || strings.Contains(draft, "/draft-0")
}

// reader reads one schema.
type reader struct {
	to       *mapping.TypesBuilder
	root     gjson.Result
	source   string
	siblings bool
	visits   int
	active   map[string]int // references that are being followed
}

// read reads a schema that applies to a path of that number of names.
func (r *reader) read(s gjson.Result, path string, levels, nesting int) {
	if r.visits++; !s.IsObject() || levels > maxLevels || nesting > maxNesting || r.visits > maxVisits {
		return
	}
	same := func(sub gjson.Result) { r.read(sub, path, levels, nesting+1) }
	for _, name := range []string{"$ref", "$recursiveRef", "$dynamicRef"} {
		if ref := s.Get(name); ref.Type == gjson.String {
			if target := ref.String(); r.active[target] < maxSame {
				r.active[target]++
				same(r.resolve(target))
				r.active[target]--
			}
			if !r.siblings {
				return
			}
		}
	}
	r.declare(s, path)
	s.Get("properties").ForEach(func(name, sub gjson.Result) bool {
		below := name.String()
		if path != "" {
			below = path + "." + below
		}
		r.read(sub, below, levels+1+strings.Count(name.String(), "."), nesting+1)
		return true
	})
	for _, name := range []string{"then", "else", "additionalItems"} {
		same(s.Get(name))
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"} {
		if list := s.Get(name); list.IsArray() {
			list.ForEach(func(_, sub gjson.Result) bool { same(sub); return true })
		} else if name == "items" {
			same(list)
		}
	}
	for _, name := range []string{"dependentSchemas", "dependencies"} {
		s.Get(name).ForEach(func(_, sub gjson.Result) bool { same(sub); return true })
	}
}

// declare declares the types that a schema names itself.
func (r *reader) declare(s gjson.Result, path string) {
	if path == "" {
		return
	}
	format := s.Get("format").String()
	names := s.Get("type")
	for _, name := range names.Array() { // one name is a list of one
		switch as := mapping.JSONType(name.String()); as {
		case mapping.JSONString:
			if format == "date" || format == "date-time" {
				as = mapping.JSONDate
			}
			r.to.Declare(path, as, r.source)
		case mapping.JSONInteger, mapping.JSONNumber, mapping.JSONBoolean, mapping.JSONObject:
			r.to.Declare(path, as, r.source)
		default: // null, array
		}
	}
}

// resolve returns the subschema that a reference names within the schema, nothing for others.
func (r *reader) resolve(ref string) gjson.Result {
	if id := strings.TrimSuffix(r.root.Get("$id").String(), "#"); id != "" {
		ref = strings.TrimPrefix(ref, id)
	}
	pointer, local := strings.CutPrefix(ref, "#")
	switch {
	case !local && ref != "":
		return gjson.Result{}
	case pointer == "":
		return r.root
	case !strings.HasPrefix(pointer, "/"):
		return anchored(r.root, pointer, 0)
	}
	at := r.root
	for name := range strings.SplitSeq(pointer[1:], "/") {
		at = member(at, unescape(name))
	}
	return at
}

// unescape returns a name of a JSON pointer in a URL's fragment.
func unescape(name string) string {
	return strings.NewReplacer("~1", "/", "~0", "~", "%25", "%", "%20", " ", "%24", "$").Replace(name)
}

// member returns a member of an object, or an item of an array, by its exact name.
func member(of gjson.Result, name string) gjson.Result {
	var found gjson.Result
	n := 0
	of.ForEach(func(key, value gjson.Result) bool {
		if of.IsArray() && name == strconv.Itoa(n) || of.IsObject() && key.String() == name {
			found = value
			return false
		}
		n++
		return true
	})
	return found
}

// anchored returns the subschema with an anchor.
func anchored(at gjson.Result, anchor string, depth int) gjson.Result {
	if depth > maxNesting {
		return gjson.Result{}
	}
	if at.IsObject() && (at.Get("$anchor").String() == anchor || at.Get("$dynamicAnchor").String() == anchor || at.Get("$id").String() == "#"+anchor) {
		return at
	}
	var found gjson.Result
	at.ForEach(func(_, value gjson.Result) bool {
		if value.IsObject() || value.IsArray() {
			found = anchored(value, anchor, depth+1)
		}
		return !found.Exists()
	})
	return found
}
