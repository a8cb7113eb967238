package admin

import (
	"encoding/json"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingfile"
)

// definition returns the content of spec's mapping file, and the mapping with which an index of spec is created. tree is nil if only the
// cluster can judge the file; the mapping is then as it stands in the file.
func definition(spec index.Spec) (file mappingfile.File, tree *mapping.Field, raw json.RawMessage, err error) {
	if file, err = mappingfile.Parse(spec.Mapping); err != nil {
		return file, nil, nil, err
	}
	if why := storage(file.Settings, file.Raw).Unsuitable(); why != "" {
		return file, nil, nil, &core.Error{Code: core.CodeInvalid, Message: "the index of the mapping file cannot be used: " + why, Hint: HintStorage}
	}
	if tree, err = file.Fields(spec.Known, spec.NewFields); err != nil {
		return file, nil, nil, err
	}
	if tree == nil || verbatim(file, spec) {
		return file, tree, file.Raw, nil
	}
	tree.RecordKinds(spec.Kinds)
	raw, err = tree.Render()
	return file, tree, raw, err
}

// verbatim reports whether a mapping file is sent as it is: nothing is added to it, and a name with dots may not become objects.
func verbatim(file mappingfile.File, spec index.Spec) bool {
	return file.Given() && !file.Combines() && (spec.NewFields == "" || !file.Parsed())
}

// unreadable returns the error of a part of a mapping file that cannot be rendered.
func unreadable(err error) error {
	return core.WrapError(core.CodeInvalid, "the mapping file cannot be parsed", err)
}
