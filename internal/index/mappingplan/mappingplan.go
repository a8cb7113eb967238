package mappingplan

import "encoding/json"

// Plan says what stands under the indexName of a repository, how that differs from the configuration, and what to do.
type Plan struct {
	Repository string `json:"repository"`
	IndexName  string `json:"indexName"`
	// MappingFile is the repository's mapping file, "" for the mapping that tutti makes.
	MappingFile string `json:"mappingFile,omitempty"`
	// State is what the name is: absent, alias, several_indices (an alias of them), index, or data_stream. Summary says it in words.
	State   string `json:"state"`
	Summary string `json:"summary"`
	// Indices are the indices behind the name, OtherAliases their other aliases. Documents is their number, 0 if it is not known.
	Indices      []string `json:"indices,omitempty"`
	OtherAliases []string `json:"otherAliases,omitempty"`
	Documents    int64    `json:"documents,omitempty"`
	// Mapping is the mapping of the index, as Elasticsearch renders it; nil without an index, or if several have contradicting ones.
	Mapping json.RawMessage `json:"mapping,omitempty"`
	// Fields and Settings are what differs. Difference is false where all Fields are only in the index and nothing is to be done.
	Fields     []Field   `json:"fields"`
	Settings   []Setting `json:"settings,omitempty"`
	Difference bool      `json:"difference"`
	// Retyped are fields that documents have added, whose types a rebuild changes. Nothing needs to be done about them.
	Retyped []Field `json:"retyped,omitempty"`
	// Limits are limits of the index that a rebuild would change. They alone are no Difference. nil from a server whose release does not tell.
	Limits []Setting `json:"limits"`
	// Refused is why the engine refuses the mapping of the configuration, "" if it does not. Untried is set if only the creation of an index
	// will tell.
	Refused string `json:"refused,omitempty"`
	Untried bool   `json:"untried,omitempty"`
	// Unused are the parts of the mapping file that nothing uses, Warnings what has another effect than it says.
	Unused   []string `json:"unused,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Next are the steps that remove the difference, in order: commands where there is one.
	Next []string `json:"next,omitempty"`
}

// Changes of a Field.
const (
	Add     = "can be added now"
	Update  = "can be changed now"
	Rebuild = "needs a rebuild"
	Keep    = "only in the index"
)

// Field is a field with its types and parameters in the configuration and in the index, "" where there is none.
type Field struct {
	Field  string `json:"field"`
	Wanted string `json:"wanted,omitempty"`
	Live   string `json:"live,omitempty"`
	Change string `json:"change"`
}

// Setting is a setting of the mapping file that the index does not have. tutti sets it only when it creates an index.
type Setting struct {
	Setting string `json:"setting"`
	Wanted  string `json:"wanted"`
	Live    string `json:"live,omitempty"`
}
