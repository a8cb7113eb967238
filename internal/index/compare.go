package index

import (
	"tutti/internal/index/mapping"
)

// NameKind is what an engine has under the name of an alias.
type NameKind string

// Kinds of a name.
const (
	NameAbsent     NameKind = "absent"
	NameAlias      NameKind = "alias"
	NameSeveral    NameKind = "several_indices" // an alias of several indices
	NameIndex      NameKind = "index"           // an index, not an alias
	NameDataStream NameKind = "data_stream"
)

// Comparison is how what an engine has under the name of an alias differs from its Spec.
type Comparison struct {
	Kind NameKind
	// Indices are the names of the indices, Aliases those of their other aliases; both sorted.
	Indices, Aliases []string
	// Foreign is set for an alias of one index that another program created.
	Foreign bool
	// Documents is the number of documents of all Indices.
	Documents int64
	// Fields and Settings are compared only for an alias of one index, and for an index.
	Fields   []mapping.Difference
	Settings []SettingDifference
}

// SettingDifference is a setting of the mapping file that the index does not have. Live is "" where the index has none.
type SettingDifference struct {
	Setting, Wanted, Live string
}

// Fields returns the fields with which an index of s is created.
func (s Spec) Fields() (*mapping.Field, error) {
	if s.Mapping == nil {
		return mapping.Merge(mapping.NewRoot(), s.Known)
	}
	tree, err := mapping.Parse(s.Mapping)
	if err != nil {
		return nil, err
	}
	return mapping.Merge(tree, mapping.MissingOwn(tree, s.Known))
}

// Differences returns how the fields of an index differ from those of s. live is the mapping of the index.
func (s Spec) Differences(wanted, live *mapping.Field) []mapping.Difference {
	found := mapping.Compare(wanted, live)
	for i := range found {
		if s.Mapping == nil && found[i].Change == mapping.ChangeUpdate {
			found[i].Change = mapping.ChangeRebuild // without a mapping file, fields that exist are never changed
		}
	}
	return found
}
