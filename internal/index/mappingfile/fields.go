package mappingfile

import (
	"cmp"
	"maps"
	"slices"

	"tutti/internal/index/mapping"
)

// Fields returns the mapping with which an index is created: own, tutti's initial fields, with the file's added, which replace own fields
// of the same path; an object without a type in the file keeps that of own. newFields is a policy of the mapping package, "" for the file's
// dynamic. A file whose root is disabled or without objects (subobjects) is taken alone. Fields returns nil if only an engine can judge the
// file.
func (f File) Fields(own *mapping.Field, newFields string) (*mapping.Field, error) {
	if f.Raw != nil && f.tree == nil {
		return nil, nil
	}
	root, err := mapping.Merge(mapping.NewRoot(), own)
	if err != nil {
		return nil, err
	}
	if f.tree != nil {
		base := root
		if !f.Combines() {
			base = mapping.NewRoot()
		}
		root = override(base, f.tree)
		root.Type = mapping.Object
	}
	policy := f.policy(newFields)
	setDynamic(root, newFields, mapping.DynamicStrict)
	if f.Combines() || policy != "" {
		root.Dynamic = mapping.DynamicOf(policy)
	}
	if newFields != "" && newFields != mapping.NewFieldsAdd {
		root.RecordNewFields(root.Params["_meta"], newFields)
	}
	root.RecordDeclared(root.Params["_meta"])
	return root, nil
}

// Combines reports whether tutti's fields can be added to those of the file.
func (f File) Combines() bool {
	if f.tree == nil {
		return f.Raw == nil
	}
	subobjects := f.tree.Params["subobjects"]
	return !f.tree.Disabled() && (subobjects == nil || string(subobjects) == "true")
}

// Has reports whether the file describes the field at a path.
func (f File) Has(path string) bool { return f.tree != nil && f.tree.Lookup(path) != nil }

// Given reports whether there is a file.
func (f File) Given() bool { return f.Raw != nil }

// Parsed reports whether the file's mapping could be parsed; otherwise only an engine can judge it.
func (f File) Parsed() bool { return f.tree != nil }

// policy returns the policy for new fields, "" for tutti's own, which is that of mapping.NewFieldsAdd.
func (f File) policy(newFields string) string {
	switch {
	case newFields != "":
		return newFields
	case f.tree == nil:
		return ""
	}
	switch f.tree.Dynamic {
	case mapping.DynamicFalse:
		return mapping.NewFieldsIgnore
	case mapping.DynamicStrict:
		return mapping.NewFieldsAdd
	default:
		return ""
	}
}

// Guessing returns the paths, mapping.RootPath for the root, whose dynamic would let an engine add fields by its own rules. tutti adds
// them by its rules instead.
func (f File) Guessing() []string {
	var found []string
	if f.tree == nil {
		return nil
	}
	if guesses(f.tree.Dynamic) {
		found = append(found, mapping.RootPath)
	}
	for path, field := range f.tree.All() {
		if guesses(field.Dynamic) {
			found = append(found, path)
		}
	}
	return found
}

func guesses(dynamic string) bool {
	return dynamic == mapping.DynamicTrue || dynamic == mapping.DynamicRuntime
}

// Update returns what an index that exists with the mapping live gets at the start: the fields of the file, and the policy for new fields
// where the configuration states one; nil for nothing. All else waits for a rebuild, so that what is served stays as it is.
func (f File) Update(live *mapping.Field, newFields string) *mapping.Field {
	update := &mapping.Field{Type: mapping.Object}
	if f.tree != nil {
		update = resolve(f.tree, live)
	}
	setDynamic(update, newFields, "")
	policy, recorded := f.policy(newFields), live.RecordedNewFields()
	if policy == "" && recorded != "" && recorded != mapping.NewFieldsAdd {
		policy = mapping.NewFieldsAdd // the key was removed
	}
	update.Dynamic = ""
	if policy != "" {
		update.Dynamic = mapping.DynamicOf(policy)
	}
	record := cmp.Or(newFields, recorded)
	if newFields == "" && record != "" {
		record = mapping.NewFieldsAdd
	}
	meta, given := update.Params["_meta"]
	if !given {
		meta = live.Params["_meta"]
	}
	if record != recorded && (record != mapping.NewFieldsAdd || recorded != "") || given && record != "" {
		update.RecordNewFields(meta, record)
	}
	update.KeepDecided(live)
	if (update.Dynamic == "" || update.Dynamic == live.Dynamic) && len(update.Params) == 0 && update.Empty() {
		return nil
	}
	return update
}

// setDynamic sets the dynamic of the objects that have one: that of a policy if there is one, else that of guessed if the engine would
// guess. It changes f.
func setDynamic(f *mapping.Field, newFields, guessed string) {
	switch {
	case f.Dynamic == "":
	case newFields != "":
		f.Dynamic = mapping.DynamicOf(newFields)
	case guesses(f.Dynamic):
		f.Dynamic = guessed
	}
	for _, child := range f.Properties {
		setDynamic(child, newFields, guessed)
	}
}

// override returns a copy of own with the fields of file. own is nil where only the file has a field.
func override(own, file *mapping.Field) *mapping.Field {
	out := file.Clone()
	if out.Type == mapping.Untyped {
		out.Type = mapping.Object
		if own != nil && own.Container() {
			out.Type = own.Type
		}
	}
	if !out.Container() {
		return out
	}
	if own == nil || !own.Container() {
		own = &mapping.Field{}
	}
	if len(own.Params) > 0 {
		out.Params = maps.Clone(own.Params)
		maps.Copy(out.Params, file.Params)
	}
	out.Properties = map[string]*mapping.Field{}
	for _, name := range slices.Sorted(maps.Keys(own.Properties)) {
		out.Properties[name] = own.Properties[name].Clone()
	}
	for name, child := range file.Properties {
		out.Properties[name] = override(own.Properties[name], child)
	}
	if len(out.Properties) == 0 {
		out.Properties = nil
	}
	return out
}

// resolve returns a copy of file in which objects without a type have that of live.
func resolve(file, live *mapping.Field) *mapping.Field {
	out := file.Clone()
	if out.Type == mapping.Untyped {
		out.Type = mapping.Object
		if live != nil && live.Container() {
			out.Type = live.Type
		}
	}
	for name, child := range file.Properties {
		var below *mapping.Field
		if live != nil {
			below = live.Properties[name]
		}
		out.Properties[name] = resolve(child, below)
	}
	return out
}
