package definition

import "slices"

// valueType is the required type of a value.
type valueType int

const (
	typeText valueType = iota
	typeFlag
	typeNumber
	// typeCount is a whole number of 0 or more.
	typeCount
	typeList
	typeObject
	typeAny
)

// valueSchema describes the values that a configuration may have in one place.
type valueSchema struct {
	valueType valueType
	// keys are the known members of an object; nil if it may have any.
	keys []key
	// item is the schema of each item of a list.
	item *valueSchema
}

// key is a known member of an object.
type key struct {
	name string
	// oldNames are its names in earlier versions of Arranger.
	oldNames []string
	valueSchema
	// unused is why tutti does not use it, "" if it does.
	unused string
}

func (s valueSchema) key(name string) (key, bool) {
	i := slices.IndexFunc(s.keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return key{}, false
	}
	return s.keys[i], true
}

// oldKey returns the key that had a name in earlier versions.
func (s valueSchema) oldKey(name string) (key, bool) {
	i := slices.IndexFunc(s.keys, func(k key) bool { return slices.Contains(k.oldNames, name) })
	if i < 0 {
		return key{}, false
	}
	return s.keys[i], true
}

func (s valueSchema) names() []string {
	names := make([]string, len(s.keys))
	for i, k := range s.keys {
		names[i] = k.name
	}
	return names
}

func texts(names ...string) []key   { return keysOf(typeText, names) }
func flags(names ...string) []key   { return keysOf(typeFlag, names) }
func counts(names ...string) []key  { return keysOf(typeCount, names) }
func numbers(names ...string) []key { return keysOf(typeNumber, names) }

func keysOf(w valueType, names []string) []key {
	keys := make([]key, len(names))
	for i, name := range names {
		keys[i] = key{name: name, valueSchema: valueSchema{valueType: w}}
	}
	return keys
}

func object(name string, keys ...[]key) key {
	return key{name: name, valueSchema: valueSchema{valueType: typeObject, keys: slices.Concat(keys...)}}
}

func objects(name string, keys ...[]key) key {
	item := object("", keys...).valueSchema
	return key{name: name, valueSchema: valueSchema{valueType: typeList, item: &item}}
}

func list(name string) key {
	return key{name: name, valueSchema: valueSchema{valueType: typeList, item: &valueSchema{valueType: typeText}}}
}

// fieldName and isActive had other names before Arranger 3.
func fieldName() []key {
	return []key{{name: "fieldName", oldNames: []string{"field"}, valueSchema: valueSchema{valueType: typeText}}}
}

func isActive() []key {
	return []key{{name: "isActive", oldNames: []string{"active"}, valueSchema: valueSchema{valueType: typeFlag}}}
}

// displayValues may have any members; Arranger's own example has an empty string instead of an object.
func displayValues() []key {
	return []key{{name: "displayValues", valueSchema: valueSchema{valueType: typeObject}}}
}

// unused marks keys that Arranger knows and tutti does not need.
func unused(why string, keys []key) []key {
	for i := range keys {
		keys[i].unused = why
	}
	return keys
}

// configuration returns the schema with every key of Arranger 3 (CONTRACT section 3), and tutti's own: dataRelease, and the files of TLS of
// remote nodes.
func configuration() valueSchema {
	headers := []key{list("headers")}
	node := texts("displayName", "nodeId")
	return object("",
		texts("catalogId", "documentType"),
		[]key{{name: "esIndex", oldNames: []string{"index"}, valueSchema: valueSchema{valueType: typeText}}},
		texts("description", "nestingPrefix", "dataRelease"),
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
					objects("remoteNodes", node, texts("documentType", "graphqlUrl", "caFile", "clientCertFile", "clientKeyFile", "serverName"), []key{object("requests", headers)}),
					object("remoteRequests", headers),
				}),
		},
		unused("is not used: tutti's own configuration says how the engine is reached", texts("esHost", "esUser", "esPass", "searchEngine")),
		unused("has no effect here", flags("disablePlayground", "enableGraphQLBatching", "enableAdmin", "enableDebug", "enableLogs")),
		unused("has no effect here", []key{object("sets", texts("index", "type"))}),
	).valueSchema
}

// accessRule returns the schema of an access.json (CONTRACT section 6).
func accessRule() valueSchema {
	return object("", texts("field", "scope"), []key{{name: "public", valueSchema: valueSchema{valueType: typeAny}}}).valueSchema
}
