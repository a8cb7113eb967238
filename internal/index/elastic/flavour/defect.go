package flavour

import (
	"fmt"
	"slices"
	"strings"

	"tutti/internal/base/order"
)

// defect is a fault of some versions of an engine that loses or changes documents.
type defect struct {
	product    Product
	from, till Version // till is the first version without it
	says       string
}

// defects are the known ones. The first is described in https://github.com/elastic/elasticsearch/issues/158212 and in the known issues of 9.5.2.
var defects = []defect{
	{
		product: Elasticsearch, from: Version{9, 5, 0}, till: Version{9, 5, 3},
		says: "may apply a part of a bulk request that reaches the limit of indexing pressure to a primary shard only, after which its replicas differ from it",
	},
}

// Defect returns what the lowest of the versions with a known defect does wrong, and which version does not; "" if nothing is known. No client can
// avoid it.
func Defect(product Product, versions ...Version) string {
	order.Sort(versions, Version.Compare)
	for _, v := range versions {
		for _, d := range defects {
			if product == d.product && !v.Less(d.from) && v.Less(d.till) {
				return fmt.Sprintf("%s %s %s; upgrade it to %s or later", product, v, d.says, d.till)
			}
		}
	}
	return ""
}

// Storage is how an index keeps its documents, as GET /<index> and a mapping file say it.
type Storage struct {
	// Mode is index.mode; SourceMode is index.mapping.source.mode, or _source.mode of the mapping; "" for the default.
	Mode, SourceMode string
	// Derived is index.derived_source.enabled; NoSource is set when _source is disabled.
	Derived, NoSource bool
}

// Source is _source in a mapping.
type Source struct {
	Mode    string `json:"mode"`
	Enabled *bool  `json:"enabled"`
}

// StorageOf returns how an index with settings, by their full names, and with a _source keeps its documents.
func StorageOf(settings map[string]any, source Source) Storage {
	text := func(name string) string {
		if v, is := settings[name]; is && v != nil {
			return strings.ToLower(fmt.Sprint(v))
		}
		return ""
	}
	s := Storage{Mode: text("index.mode"), SourceMode: text("index.mapping.source.mode"), Derived: text("index.derived_source.enabled") == "true"}
	if source.Mode != "" {
		s.SourceMode = strings.ToLower(source.Mode)
	}
	s.NoSource = s.SourceMode == "disabled" || source.Enabled != nil && !*source.Enabled
	return s
}

// Unsuitable returns why documents in such an index would not be what was written, "" if they are.
func (s Storage) Unsuitable() string {
	switch {
	case s.Mode == "time_series":
		return "index.mode is time_series, in which the engine chooses the ids of documents"
	case s.Mode == "logsdb" && s.SourceMode == "stored":
		return "index.mode is logsdb, which refuses documents without @timestamp"
	case !slices.Contains([]string{"", "standard", "lookup"}, s.Mode):
		return "index.mode is " + s.Mode + ", " + rebuilt
	case s.Derived:
		return "index.derived_source.enabled is true, " + rebuilt
	case s.SourceMode == "synthetic":
		return "its _source is synthetic, " + rebuilt
	case s.NoSource:
		return "its _source is disabled, so that documents cannot be read"
	default:
		return ""
	}
}

// rebuilt is what an index does to documents that it stores as columns.
const rebuilt = "so that documents are rebuilt from columns: nulls are lost, dates are rewritten, and lists may be sorted or become single values"
