package compare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/app/check"
	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingplan"
	"tutti/internal/index/merged"
)

// Comparer compares an alias with its configuration, without changing anything.
type Comparer interface {
	Mappings
	Compare(ctx context.Context, spec index.Spec) (index.Comparison, error)
}

// Mapping returns the plan of a repository of a configuration. It reads the mapping file as it is now. types are those that the repository
// declares for its documents.
func Mapping(ctx context.Context, cfg config.Config, rc config.Repository, types *mapping.Types, x Comparer) (mappingplan.Plan, error) {
	spec, err := settings.Spec(rc)
	if err != nil {
		return mappingplan.Plan{}, err
	}
	spec.Types = types
	found, err := x.Compare(ctx, spec)
	if err != nil {
		return mappingplan.Plan{}, err
	}
	p := mappingplan.Plan{
		Repository: rc.Code, IndexName: rc.IndexName, MappingFile: rc.MappingFile,
		State: string(found.Kind), Summary: summary(found),
		Indices: found.Indices, OtherAliases: found.Aliases, Documents: found.Documents, Fields: []mappingplan.Field{},
		Limits: []mappingplan.Setting{},
	}
	p.Mapping, err = x.Mapping(ctx, rc.IndexName)
	if code := core.CodeOf(err); err != nil && code != core.CodeConflict && !errors.Is(err, core.ErrIndexMissing) {
		return mappingplan.Plan{}, err
	}
	for _, d := range found.Fields {
		p.Fields = append(p.Fields, mappingplan.Field{Field: d.Field, Wanted: d.Wanted, Live: d.Live, Change: changeText(d.Change)})
	}
	for _, d := range found.Retyped {
		p.Retyped = append(p.Retyped, mappingplan.Field{Field: d.Field, Wanted: d.Wanted, Live: d.Live, Change: changeText(d.Change)})
	}
	for _, s := range found.Settings {
		p.Settings = append(p.Settings, mappingplan.Setting{Setting: s.Setting, Wanted: s.Wanted, Live: s.Live})
	}
	for _, s := range found.Limits {
		p.Limits = append(p.Limits, mappingplan.Setting{Setting: s.Setting, Wanted: s.Wanted, Live: s.Live})
	}
	p.Unused, p.Warnings = check.MappingNotes(cfg, spec)
	p.Untried = found.Unasked
	if p.Next = next(rc.Code, found); found.Refused != nil {
		p.Refused = core.MessageOf(found.Refused)
		p.Next = slices.Insert(slices.DeleteFunc(p.Next, func(step string) bool { return !strings.Contains(step, " adopt ") }), 0,
			cmp.Or(core.HintOf(found.Refused), "fix the mapping file"))
	}
	if replaces := slices.ContainsFunc(p.Next, func(step string) bool {
		return strings.Contains(step, " adopt ") || strings.Contains(step, " --rebuild ")
	}); replaces && core.CheckOwnIndex(cfg.CoreRepositories(), rc.Code) != nil {
		p.Next = []string{"choose another indexName for all repositories that share this one"}
	}
	p.Difference = len(p.Next) > 0
	return p, nil
}

// Definition returns the body with which an index of a repository would be created; of the embedded index it has only the mapping. With a
// search engine that does not answer the body is as for Elasticsearch, and unreached is why.
func Definition(ctx context.Context, cfg config.Config, rc config.Repository) (body json.RawMessage, unreached, err error) {
	spec, err := settings.Spec(rc)
	if err != nil {
		return nil, nil, err
	}
	if cfg.Index.URL == "" {
		tree, err := embedded.Definition(spec)
		if err != nil {
			return nil, nil, err
		}
		body, err = json.Marshal(map[string]any{"mappings": tree})
		return body, nil, err
	}
	engine, err := settings.OpenIndex(cfg.Index)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = engine.Close() }() // nothing was written
	return engine.Definition(ctx, spec)
}

func changeText(c mapping.Change) string {
	switch c {
	case mapping.ChangeAdd:
		return mappingplan.Add
	case mapping.ChangeUpdate:
		return mappingplan.Update
	case mapping.ChangeRebuild:
		return mappingplan.Rebuild
	case mapping.ChangeNone:
		return mappingplan.Keep
	default:
		return string(c)
	}
}

// summary describes what a name is.
func summary(found index.Comparison) string {
	switch found.Kind {
	case index.NameAbsent:
		return "absent"
	case index.NameSeveral:
		return "an alias of several indices, and tutti needs one of a single index: " + strings.Join(found.Indices, ", ")
	case index.NameIndex:
		return "an index, and tutti needs an alias of this name"
	case index.NameDataStream:
		return "a data stream, and tutti needs an alias of this name"
	case index.NameAlias:
	}
	text := "an alias of " + strings.Join(found.Indices, ", ")
	if found.Foreign {
		text += ", which tutti did not create; it is used as it is"
	}
	return text
}

// next returns the steps after which the index is as configured, none if it is.
func next(code string, found index.Comparison) []string {
	count := map[mapping.Change]int{}
	for _, d := range found.Fields {
		count[d.Change]++
	}
	rebuild := "tutti index " + code + " --rebuild --wait"
	run := "tutti index " + code + " --wait"
	switch found.Kind {
	case index.NameAbsent:
		return []string{"start tutti, which creates the alias and an index for it", run}
	case index.NameSeveral:
		return []string{"tutti mapping adopt " + code, run}
	case index.NameDataStream:
		return []string{"choose another indexName"}
	case index.NameAlias, index.NameIndex:
	}
	var steps []string
	if found.Kind == index.NameIndex {
		steps = []string{"tutti mapping adopt " + code}
	}
	switch {
	case count[mapping.ChangeRebuild] > 0 || len(found.Settings) > 0:
		return append(steps, rebuild)
	case count[mapping.ChangeAdd]+count[mapping.ChangeUpdate] > 0 && found.Kind == index.NameAlias:
		return append(steps, "restart tutti, which adds the fields", run)
	case found.Kind == index.NameIndex:
		return append(steps, run)
	default:
		return steps
	}
}

// Repository returns a repository of a configuration by its code, or CodeNotFound.
func Repository(cfg config.Config, code string) (config.Repository, error) {
	codes := make([]string, 0, len(cfg.Repositories))
	for _, rc := range cfg.Repositories {
		if rc.Code == code {
			return rc, nil
		}
		codes = append(codes, rc.Code)
	}
	return config.Repository{}, &core.Error{
		Code: core.CodeNotFound, Message: fmt.Sprintf("the configuration has no repository %q", code), Hint: "it has " + strings.Join(codes, ", "),
	}
}

// Engine connects to the search engine of a configuration, which must have one. It must be closed.
func Engine(cfg config.Config) (*merged.Index, error) {
	engine, err := settings.OpenIndex(cfg.Index)
	if err != nil {
		return nil, err
	}
	return merged.New(engine, cfg.CoreRepositories()), nil
}

// Adopted is the result of Adopt.
type Adopted struct {
	// IndexName is the alias, Index its index.
	IndexName string `json:"indexName"`
	Index     string `json:"index"`
	// Released are the indices that the alias stood for as well.
	Released []string `json:"released,omitempty"`
}

// Adopt turns the index that has a repository's indexName into an alias of the same documents, or leaves the alias of several indices with
// one of them.
func Adopt(ctx context.Context, cfg config.Config, code string) (Adopted, error) {
	rc, err := Repository(cfg, code)
	if err != nil {
		return Adopted{}, err
	}
	if err := core.CheckOwnIndex(cfg.CoreRepositories(), code); err != nil {
		return Adopted{}, err
	}
	if cfg.Index.URL == "" {
		return Adopted{}, core.NewError(core.CodeInvalid, "the configuration has no index.url; the embedded index has nothing to adopt")
	}
	engine, err := settings.OpenIndex(cfg.Index)
	if err != nil {
		return Adopted{}, err
	}
	defer func() { _ = engine.Close() }() // Adopt has ended
	physical, released, err := engine.Adopt(ctx, rc.IndexName)
	return Adopted{rc.IndexName, physical, released}, err
}
