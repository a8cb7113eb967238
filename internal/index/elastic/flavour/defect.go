package flavour

import (
	"fmt"
	"slices"
	"strings"
)

// defect is a fault of some versions of an engine that loses or changes documents.
type defect struct {
	product    Product
	from, till Version // till is the first version without it
	says       string
}

// defects are the known ones. Elasticsearch's release notes of 9.5.3 name the first.
var defects = []defect{{
	Elasticsearch, Version{9, 5, 0}, Version{9, 5, 3},
	"does not replicate a bulk request over the limit of indexing pressure, so that replicas lack documents that were confirmed",
}}

// Defect returns what a version of the engine does wrong that no client can avoid, and which version does not, "" if nothing is known.
func (e Engine) Defect() string {
	for _, d := range defects {
		if e.Flavour != nil && e.Product == d.product && !e.Version.Less(d.from) && e.Version.Less(d.till) {
			return fmt.Sprintf("%s %s; upgrade it to %s", e, d.says, d.till)
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
	case !slices.Contains([]string{"", "standard", "lookup"}, s.Mode):
		return "index.mode is " + s.Mode + ", in which documents are rebuilt from columns or cannot have versions"
	case s.Derived:
		return "index.derived_source.enabled is true, so that documents are rebuilt from columns, and the order of lists is lost"
	case s.SourceMode == "synthetic":
		return "its _source is synthetic, so that documents are rebuilt from columns, and the order of lists is lost"
	case s.NoSource:
		return "its _source is disabled, so that documents cannot be read"
	default:
		return ""
	}
}
