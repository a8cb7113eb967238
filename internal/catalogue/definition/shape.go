package definition

import "slices"

// want is what a value must be.
type want int

const (
	wantText want = iota
	wantFlag
	wantNumber
	// wantCount is a whole number of 0 or more.
	wantCount
	wantList
	wantObject
	wantAnything
)

// shape is what a configuration may hold at one place.
type shape struct {
	want want
	// keys are the known members of an object; nil when it may hold any.
	keys []key
	// item is the shape of each item of a list.
	item *shape
}

// key is a known member of an object.
type key struct {
	name string
	// old are names that earlier versions of Arranger had for it.
	old []string
	shape
	// unused says why tutti does not use it, "" when it does.
	unused string
}

func (s shape) key(name string) (key, bool) {
	i := slices.IndexFunc(s.keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return s.keys[i], true
}

// oldKey returns the key that had a name in earlier versions.
func (s shape) oldKey(name string) (key, bool) {
	i := slices.IndexFunc(s.keys, func(k key) bool { return slices.Contains(k.old, name) })
	if i < 0 {
		return key{}, false
	}
	return s.keys[i], true
}

func (s shape) names() []string {
	names := make([]string, len(s.keys))
	for i, k := range s.keys {
		names[i] = k.name
	}
	return names
}

func texts(names ...string) []key   { return keysOf(wantText, names) }
func flags(names ...string) []key   { return keysOf(wantFlag, names) }
func counts(names ...string) []key  { return keysOf(wantCount, names) }
func numbers(names ...string) []key { return keysOf(wantNumber, names) }

func keysOf(w want, names []string) []key {
	keys := make([]key, len(names))
	for i, name := range names {
		keys[i] = key{name: name, shape: shape{want: w}}
	}
	return keys
}

func object(name string, keys ...[]key) key {
	return key{name: name, shape: shape{want: wantObject, keys: slices.Concat(keys...)}}
}

func objects(name string, keys ...[]key) key {
	item := object("", keys...).shape
	return key{name: name, shape: shape{want: wantList, item: &item}}
}

func list(name string) key {
	return key{name: name, shape: shape{want: wantList, item: &shape{want: wantText}}}
}

// fieldName and isActive had other names before Arranger 3.
func fieldName() []key {
	return []key{{name: "fieldName", old: []string{"field"}, shape: shape{want: wantText}}}
}

func isActive() []key {
	return []key{{name: "isActive", old: []string{"active"}, shape: shape{want: wantFlag}}}
}

// displayValues may hold anything for each value; Arranger's own example has an empty text in its place.
func displayValues() []key { return []key{{name: "displayValues", shape: shape{want: wantObject}}} }

// unused are keys that Arranger knows and tutti does not need.
func unused(why string, keys []key) []key {
	for i := range keys {
		keys[i].unused = why
	}
	return keys
}

// configuration returns every key that Arranger 3 knows (CONTRACT section 3).
func configuration() shape {
	headers := []key{list("headers")}
	node := texts("displayName", "nodeId")
	return object("",
		texts("catalogId", "documentType"),
		[]key{{name: "esIndex", old: []string{"index"}, shape: shape{want: wantText}}},
		texts("description", "nestingPrefix"),
		flags("disableGraphQLIntrospection", "disableDownloads", "disableFilters", "enableSets"),
		counts("maxAliases", "maxDepth"),
		[]key{
			objects("extended", fieldName(), texts("displayName", "displayType", "unit", "description", "type"),
				isActive(), flags("isArray", "primaryKey", "quickSearchEnabled"), numbers("rangeStep"), displayValues()),
			object("facets", []key{
				objects("aggregations", fieldName(), texts("displayName", "displayType", "type"), isActive(), flags("show")),
			}),
			object("table", counts("maxResultsWindow"), texts("rowIdFieldName"), []key{
				objects("columns", fieldName(), displayValues(),
					texts("accessor", "displayFormat", "displayName", "displayType", "id", "jsonPath", "query", "type"),
					isActive(), flags("canChangeShow", "isArray", "show", "sortable")),
				objects("defaultSorting", fieldName(), isActive(), flags("desc")),
			}),
			objects("matchbox", fieldName(), texts("displayName", "keyFieldName"), isActive(),
				[]key{list("searchFields"), list("searchFieldNames")}),
			object("downloads", flags("allowCustomMaxRows"), counts("maxRows", "chunkSize")),
			object("charts", texts("query")),
			object("network",
				[]key{
					object("localNode", node, texts("catalogId")),
					objects("remoteNodes", node, texts("documentType", "graphqlUrl"), []key{object("requests", headers)}),
					object("remoteRequests", headers),
				}),
		},
		unused("is not used: tutti's own configuration says how the engine is reached", texts("esHost", "esUser", "esPass", "searchEngine")),
		unused("has no effect here", flags("disablePlayground", "enableGraphQLBatching", "enableAdmin", "enableDebug", "enableLogs")),
		unused("has no effect here", []key{object("sets", texts("index", "type"))}),
	).shape
}

// accessRule returns the keys of an access.json (CONTRACT section 6).
func accessRule() shape {
	return object("", texts("field", "scope"), []key{{name: "public", shape: shape{want: wantAnything}}}).shape
}
