package index

import (
	"fmt"
	"maps"
	"slices"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingfile"
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
	// Retyped are fields that documents have added, whose types a rebuild changes.
	Retyped []mapping.Difference
	// Limits are the limits of the index that a rebuild changes.
	Limits []SettingDifference
	// Refused is why the engine refuses the mapping of the Spec, nil if it does not. Unasked is set if only the creation of an index will tell.
	Refused error
	Unasked bool
}

// SettingDifference is a setting that the index does not have as the mapping file or the configuration says. Live is "" where the index has none.
type SettingDifference struct {
	Setting, Wanted, Live string
}

// LimitDifferences returns the limits, by their settings, that an index does not have as wanted, sorted. 0 is no limit.
func LimitDifferences(wanted, live map[string]any) []SettingDifference {
	var found []SettingDifference
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		d := SettingDifference{Setting: name, Wanted: fmt.Sprint(wanted[name])}
		if has := live[name]; has != nil && has != 0 { // none, in an embedded index of a release without it
			d.Live = fmt.Sprint(has)
		}
		if d.Live != d.Wanted {
			found = append(found, d)
		}
	}
	return found
}

// Fields returns the fields with which an index of s is created. CodeUnsupported if only an engine can judge the mapping file.
func (s Spec) Fields() (*mapping.Field, error) {
	file, err := mappingfile.Parse(s.Mapping)
	if err != nil {
		return nil, err
	}
	tree, err := file.Fields(s.Known, s.NewFields)
	if err == nil && tree == nil {
		err = core.NewError(core.CodeUnsupported, "the mapping file has fields below a value")
	}
	if err == nil {
		tree.RecordKinds(s.Kinds)
	}
	return tree, err
}

// Differences returns how the fields of an index differ from those of s, whose mapping file can be parsed. live is the mapping of the index.
// What Ensure does not change needs a rebuild: fields that exist and that the file does not name, and the fields that the file does not name
// in an index that was made with a file.
func (s Spec) Differences(wanted, live *mapping.Field) []mapping.Difference {
	file, err := mappingfile.Parse(s.Mapping)
	if err != nil {
		return nil
	}
	found := mapping.Compare(wanted, live)
	update, own := file.Update(live, s.NewFields), mapping.MissingOwn(live, s.Known)
	for i, d := range found {
		changes := file.Has(d.Field) || d.Change == mapping.ChangeAdd && (!file.Given() || own != nil && own.Lookup(d.Field) != nil)
		if d.Field == mapping.RootPath {
			changes = update != nil && (update.Dynamic != "" || wanted.Dynamic == live.Dynamic)
		}
		if !changes && (d.Change == mapping.ChangeAdd || d.Change == mapping.ChangeUpdate) {
			found[i].Change = mapping.ChangeRebuild
		}
	}
	return found
}
