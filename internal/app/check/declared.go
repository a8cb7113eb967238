package check

import (
	"context"
	"fmt"
	"strings"

	"tutti/internal/config"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
	"tutti/internal/upstream/protocol"
)

// DocumentTypes returns the types that a repository declares, by the paths of its documents. Fields that tutti's own mapping or the mapping
// file has keep the types that they have there.
func DocumentTypes(types *mapping.Types, rc config.Repository) *mapping.Types {
	spec, err := Spec(rc)
	if err != nil {
		spec.Mapping = rc.Mapping
	}
	known, err := spec.Fields()
	if err != nil { // of the mapping file, which pauses the repository or is the engine's alone to judge
		known = rc.Kind().Known()
	}
	return types.Below(rc.Kind().Above).Without(known)
}

// Declared requests the types that a repository elsewhere declares, by the paths of its documents. It returns none for the built-in one, whose
// types only the store has.
func Declared(ctx context.Context, rc config.Repository, key, version string) (*mapping.Types, error) {
	kind := protocol.Of(rc.Type)
	if kind.Open == nil {
		return nil, nil
	}
	cfg := rc.Client(key)
	cfg.UserAgent = "tutti/" + version
	from, err := kind.Open(cfg, rc.Own())
	if err != nil {
		return nil, err
	}
	defer from.Close()
	source, ok := from.(upstream.Declarer)
	if !ok {
		return nil, nil
	}
	types, _, err := source.Declared(ctx)
	return DocumentTypes(types, rc), err
}

// maxDiffering is the number of paths with several declarations that a message names.
const maxDiffering = 3

// Differing names the paths that a repository declares with several types, "" for none.
func Differing(types *mapping.Types) string {
	all := types.Differing()
	if len(all) == 0 {
		return ""
	}
	text := "declares several types for " + strings.Join(all[:min(len(all), maxDiffering)], "; ")
	if more := len(all) - maxDiffering; more > 0 {
		text += fmt.Sprintf("; and for %d more fields", more)
	}
	return text
}

// declaredFindings returns the findings on what a repository declares about the types of fields.
func declaredFindings(ctx context.Context, subject, host, key string, rc config.Repository, source upstream.Declarer) []Finding {
	types, none, err := source.Declared(ctx)
	switch {
	case err != nil:
		f := repositoryFailure(subject, host, key, rc, err)
		f.Message = "what it declares about the types of fields: " + f.Message
		return []Finding{f}
	case none != "":
		return []Finding{{
			subject, StatusWarn, "declares no types of fields (" + none + "): numbers are indexed as double, texts as keyword",
			"give the repository's token the right to read them, or describe the fields in a mapping file",
		}}
	}
	return typeFindings(subject, DocumentTypes(types, rc))
}

// typeFindings returns the findings on the types that a repository declares.
func typeFindings(subject string, types *mapping.Types) []Finding {
	if types.Len() == 0 {
		return nil
	}
	found := []Finding{{subject, StatusOK, "declares the types of " + count(types.Len(), "field", "fields"), ""}}
	if text := Differing(types); text != "" {
		found = append(found, Finding{subject, StatusWarn, text, "declare one type, or describe the field in a mapping file"})
	}
	return found
}
