package check

import (
	"context"
	"fmt"
	"strings"

	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/index/mapping"
	"tutti/internal/store"
	"tutti/internal/upstream"
	"tutti/internal/upstream/declared"
	"tutti/internal/upstream/protocol"
)

// Declared reads the types that a repository declares, by the paths of its documents: from the repository, or of the built-in one from the
// store.
func Declared(ctx context.Context, cfg config.Config, rc config.Repository, version string) (*mapping.Types, error) {
	kind := protocol.Of(rc.Type)
	if kind.Open == nil {
		types, err := storedTypes(ctx, cfg)
		return settings.DocumentTypes(types, rc), err
	}
	client := rc.Client(cfg.RepositoryKey(rc.Code))
	client.UserAgent = "tutti/" + version
	from, err := kind.Open(client, rc.Own())
	if err != nil {
		return nil, err
	}
	defer from.Close()
	source, ok := from.(upstream.Declarer)
	if !ok {
		return nil, nil
	}
	types, _, err := source.Declared(ctx)
	return settings.DocumentTypes(types, rc), err
}

// storedTypes returns what the analysis types of the built-in repository declare, as the store has them.
func storedTypes(ctx context.Context, cfg config.Config) (*mapping.Types, error) {
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	r, err := store.Inspect(ctx, settings.Store(cfg))
	if err != nil {
		return nil, err
	}
	if r.Unreadable {
		return nil, core.NewError(core.CodeUnavailable, "a process left the store behind without closing it, so that it cannot be read without changing it")
	}
	return typesOf(r), nil
}

// typesOf returns what the analysis types in a store declare.
func typesOf(r store.Report) *mapping.Types {
	var b mapping.TypesBuilder
	for _, t := range r.Analyses.Types {
		declared.Schema(&b, t.Schema, declared.Source(datamodel.AnalysisTypeRef{Name: t.Name, Version: t.Version}))
	}
	return b.Types()
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
	return typeFindings(subject, settings.DocumentTypes(types, rc))
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
