package flavour

import (
	"fmt"
	"slices"
	"strings"

	"tutti/internal/filter/fieldtype"
	"tutti/internal/index/mapping"
)

// Product is the name of an engine.
type Product string

// The supported products.
const (
	Elasticsearch Product = "Elasticsearch"
	OpenSearch    Product = "OpenSearch"
)

// Requirement names the supported engines in messages.
const Requirement = "tutti needs Elasticsearch 7.17 or later, or OpenSearch 2.7 or later"

// Flavour is what the adapter does differently for an engine.
type Flavour struct {
	Product Product
	// oldest is the oldest supported version, and because is why older ones are not.
	oldest  Version
	because string
	// tried are the major versions that the suites run on.
	tried []int

	// FreeForm is the mapping type of objects whose members are not fields of their own.
	FreeForm mapping.Type
	// Tiebreaker is the sort field that orders the documents of a point in time. Unless Unique, it is unique only within a shard.
	Tiebreaker string
	Unique     bool
	// types is the engine in the table of types.
	types fieldtype.Engines
	// ScoreComputed is set when sorts inside a nested field, and by a sum, an average or a median, must request scores. OpenSearch otherwise
	// skips documents that cannot be among the first, which such values do not support (unsupported_operation_exception).
	ScoreComputed bool
	// PointInTime has the forms of the requests for points in time.
	PointInTime PointInTime
	// Privileges are those that the user needs, in the engine's names.
	Privileges Privileges
}

// Privileges are the smallest set of privileges with which everything works, as deploy/docs/engines.md grants them.
type Privileges struct {
	// Cluster are those on the cluster, Index those on a repository's alias and its indices, and Read those on the index of a catalogue
	// that no repository writes.
	Cluster, Index, Read []string
	// Template is that on the cluster to render a mapping file without creating an index, which only tutti check and plan do.
	Template string
}

// Hint returns how to grant the privileges on the indices of names.
func (p Privileges) Hint(names string) string {
	return "grant the user's role the privileges " + strings.Join(p.Cluster, ", ") + " on the cluster, and " + strings.Join(p.Index, ", ") + " on " + names
}

// PointInTime has the forms of the requests for points in time.
type PointInTime struct {
	// OpenPath follows the name of the index; OpenMember is the member of the response that has the id.
	OpenPath, OpenMember string
	// ClosePath is the whole path; CloseBody is the body's format, with a %s for the id as a JSON string.
	ClosePath, CloseBody string
}

// flavours has one row for each product.
var flavours = []*Flavour{
	{
		Product: Elasticsearch, oldest: Version{Major: 7, Minor: 17}, because: "earlier versions are not tested", tried: []int{7, 8, 9},
		types: fieldtype.Elasticsearch, FreeForm: mapping.Flattened, Tiebreaker: "_shard_doc", Unique: true,
		PointInTime: PointInTime{OpenPath: "/_pit", OpenMember: "id", ClosePath: "/_pit", CloseBody: `{"id":%s}`},
		Privileges: Privileges{
			Cluster: []string{"monitor"}, Index: []string{"manage", "read", "write"}, Read: []string{"read", "view_index_metadata"},
			Template: "manage_index_templates",
		},
	},
	{
		Product: OpenSearch, oldest: Version{Major: 2, Minor: 7}, because: "earlier versions have no flat_object fields, and before 2.4 no points in time",
		tried: []int{2, 3}, types: fieldtype.OpenSearch, FreeForm: mapping.FlatObject, Tiebreaker: "_seq_no", ScoreComputed: true, // _shard_doc exists only from 3.3 on
		PointInTime: PointInTime{
			OpenPath: "/_search/point_in_time", OpenMember: "pit_id", ClosePath: "/_search/point_in_time", CloseBody: `{"pit_id":[%s]}`,
		},
		Privileges: Privileges{
			Cluster: []string{
				"cluster:monitor/main", "cluster:monitor/health", "cluster:monitor/nodes/info",
				"indices:data/write/bulk", "indices:data/read/mget", "indices:data/read/msearch",
			},
			Index: []string{"indices_all"},
			Read:  []string{"read", "indices:admin/mappings/get", "indices:monitor/settings/get"}, Template: "indices:admin/index_template/simulate",
		},
	},
}

// Engine is an engine at a version.
type Engine struct {
	*Flavour
	// Version is zero when the cluster does not report it to this user.
	Version Version
}

// Of returns the engine of a product. It returns false, and why, if the adapter does not support it.
func Of(product Product, version Version) (engine Engine, why string, ok bool) {
	at := slices.IndexFunc(flavours, func(f *Flavour) bool { return f.Product == product })
	if at < 0 {
		return Engine{}, Requirement, false
	}
	engine = Engine{flavours[at], version}
	if version != (Version{}) && version.Less(engine.oldest) {
		return engine, fmt.Sprintf("%s: %s", Requirement, engine.because), false
	}
	return engine, "", true
}

// Tried reports whether the suites run on this major version.
func (e Engine) Tried() bool {
	return e.Version == (Version{}) || slices.Contains(e.tried, e.Version.Major)
}

// Faulty reports whether the engine does something wrong with a type of fields. One that does not report its version does what any version
// does.
func (e Engine) Faulty(fieldType string, kind fieldtype.FaultKind) bool {
	f := fieldtype.Of(fieldType).Fault(e.types, kind)
	if f == nil || e.Version == (Version{}) {
		return f != nil
	}
	from, _ := ParseVersion(f.From)
	till, ends := ParseVersion(f.Till)
	return !e.Version.Less(from) && (!ends || e.Version.Less(till))
}

// laterLimits are the settings of limits that only indices of later versions of Elasticsearch have, by the first version. Of
// mapping.SettingArrayObjects that is one from 9.3 to 9.5; those before 9.5 were not tried.
var laterLimits = []struct {
	setting string
	since   Version
	value   func(l mapping.Limits) int
}{
	{mapping.SettingNestedParents, Version{Major: 9, Minor: 3}, func(l mapping.Limits) int { return l.Nested }},
	{mapping.SettingArrayObjects, Version{Major: 9, Minor: 5}, func(l mapping.Limits) int { return l.Objects }},
}

// LimitSettings returns the limits as flat settings of an index. An engine is sent only those that it is known to have, because it refuses an
// index with others.
func (e Engine) LimitSettings(l mapping.Limits) map[string]any {
	settings := l.Settings()
	for _, each := range laterLimits {
		if e.Product == Elasticsearch && !e.Version.Less(each.since) {
			settings[each.setting] = each.value(l)
		}
	}
	return settings
}

// vectorsOmitted is the first version of Elasticsearch that leaves the vectors of a new index out of the documents that it returns, and that
// rebuilds these documents, with numbers in another notation, unless the index or the request says otherwise.
var vectorsOmitted = Version{Major: 9, Minor: 2}

// OmitsVectors reports whether the engine leaves vectors out of documents unless the index or the request says otherwise.
func (e Engine) OmitsVectors() bool {
	return e.Product == Elasticsearch && !e.Version.Less(vectorsOmitted)
}

// String returns the product and its version.
func (e Engine) String() string {
	if e.Version == (Version{}) {
		return string(e.Product)
	}
	return string(e.Product) + " " + e.Version.String()
}
