package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tuttihttp "tutti/http"
	"tutti/internal/catalogue/definition"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/federation"
)

const subjectCatalogues = "catalogues"

// Catalogues looks at a folder of catalogues: what each of them is, what is wrong with it and what should be known. fieldsOf, where
// it is not nil, returns the fields of a catalogue as a server describes them; nothing else is dialled.
func Catalogues(dir string, fieldsOf func(id string) ([]core.CatalogueField, error)) Report {
	set, err := definition.Load(dir, definition.Options{Reserved: tuttihttp.ReservedIDs()})
	if err != nil {
		return newReport([]Finding{{subjectCatalogues, StatusFail, core.MessageOf(err) + ": " + dir, core.HintOf(err)}})
	}
	found := warnings(subjectCatalogues, set.Warnings)
	for _, d := range set.Definitions {
		found = append(found, written(d)...)
		if d.Err == nil {
			found = append(found, sound(d, ""))
		}
		if d.Err == nil && fieldsOf != nil {
			fields, err := fieldsOf(d.ID)
			found = append(found, undeclared(d, fields, err)...)
		}
		found = append(found, warnings(subjectOf(d), d.Warnings)...)
	}
	return newReport(found)
}

// undeclared names the fields of which the index shows several values, and that the catalogue does not declare as lists.
func undeclared(d definition.Definition, fields []core.CatalogueField, err error) []Finding {
	if err != nil {
		return []Finding{{subjectOf(d), StatusWarn, "which fields hold several values is not known: " + core.MessageOf(err), core.HintOf(err)}}
	}
	var found []Finding
	for _, f := range fields {
		if declared := slices.ContainsFunc(d.Extended, func(e definition.ExtendedField) bool {
			return (e.FieldName == f.Name || strings.ReplaceAll(e.FieldName, "__", ".") == f.Name) && e.IsArray != nil && *e.IsArray
		}); f.MultiValued && !declared {
			found = append(found, Finding{
				subjectOf(d), StatusWarn, fmt.Sprintf("field %q has multiValued: true: documents hold several values, and searches return the first", f.Name),
				"set isArray for the field in extended.json",
			})
		}
	}
	return found
}

// Definitions gives the catalogues that a configuration has: those of its folder, or one for each index that is written to. Its
// error is that of definition.Load. A process that starts reads them in the same way.
func Definitions(cfg config.Config) (definition.Set, error) {
	opts := definition.Options{
		Reserved:                    tuttihttp.ReservedIDs(),
		DisableGraphQLIntrospection: cfg.Catalogues.DisableGraphQLIntrospection,
		Production:                  cfg.Catalogues.Production,
	}
	var set definition.Set
	var err error
	if cfg.Catalogues.Dir == "" {
		set = definition.Default(defaultIndices(cfg.Repositories), opts)
	} else {
		set, err = definition.Load(cfg.Catalogues.Dir, opts)
	}
	for i := range set.Definitions {
		if d := &set.Definitions[i]; d.Access == nil {
			d.DefaultAccess = core.DefaultAccess(cfg.Auth.DefaultAccess)
		}
	}
	return set, err
}

// cataloguesProbe looks at the catalogues of the configuration, and at what the index says to each.
func cataloguesProbe(cfg config.Config, opts Options) probe {
	return func(ctx context.Context) []Finding {
		set, err := Definitions(cfg)
		if err != nil {
			return []Finding{{subjectCatalogues, StatusFail, core.MessageOf(err), core.HintOf(err)}}
		}
		if cfg.Catalogues.Dir == "" {
			var found []Finding
			for _, d := range set.Definitions {
				found = append(append(found, written(d)...), DefaultAccess(cfg.Auth, d)...)
			}
			return found
		}
		judge := judgeOf(cfg, opts)
		defer judge.close()
		found := warnings(subjectCatalogues, set.Warnings)
		for _, d := range set.Definitions {
			found = append(found, written(d)...)
			if d.Err == nil {
				found = append(found, judge.indexed(ctx, d)...)
				found = append(found, reader(cfg.Auth, d)...)
				found = append(found, DefaultAccess(cfg.Auth, d)...)
				found = append(found, nodes(ctx, d, opts)...)
			}
			found = append(found, warnings(subjectOf(d), d.Warnings)...)
		}
		return found
	}
}

// reader looks at who can read a catalogue that an access rule narrows.
func reader(cfg config.Auth, d definition.Definition) []Finding {
	if d.Access == nil || cfg.Mode != config.ModeNone {
		return nil
	}
	message := "access.json asks for scopes, and with auth.mode none nobody has any: what its public matches is all that is seen"
	if d.Access.Public == nil {
		message = "access.json asks for scopes, and with auth.mode none nobody has any: nothing is seen"
	}
	return []Finding{{subjectOf(d), StatusWarn, message, "set auth.mode: token, or remove access.json where everybody may see everything"}}
}

// DefaultAccess returns a finding that says who reads a catalogue which has no access rule. It returns none for a catalogue that has
// one or a fault, and none where auth.mode is none and the catalogue is public, as all is then.
func DefaultAccess(cfg config.Auth, d definition.Definition) []Finding {
	if d.Access != nil || d.Err != nil || cfg.Mode == config.ModeNone && d.DefaultAccess == core.AccessPublic {
		return nil
	}
	rule := "add an access.json to the catalogue's folder"
	if d.Folder == "" {
		rule = "give the index a folder with an access.json in catalogues.dir"
	}
	found := Finding{Subject: subjectOf(d), Status: StatusOK}
	switch {
	case d.DefaultAccess == core.AccessPublic:
		found.Status, found.Message = StatusWarn, "anyone reads it without a token"
		found.Hint = rule + ", or set auth.defaultAccess: authenticated"
	case d.DefaultAccess == core.AccessAuthenticated:
		found.Message = "anyone with a valid token reads it"
	case cfg.Mode == config.ModeNone:
		found.Status, found.Message = StatusWarn, "no caller reads it, as with auth.mode none nobody has a scope"
		found.Hint = rule + ", set auth.mode: token, or set auth.defaultAccess: public"
	default:
		found.Message = "only tokens with the scope " + cfg.SystemScope + cfg.WriteSuffix + " read it"
	}
	found.Message = fmt.Sprintf("no access.json: %s (auth.defaultAccess: %s)", found.Message, d.DefaultAccess)
	return []Finding{found}
}

// nodes looks at the other nodes of a catalogue's federation.
func nodes(ctx context.Context, d definition.Definition, opts Options) []Finding {
	var found []Finding
	for _, p := range federation.Probe(ctx, d, federation.Config{Timeout: opts.Timeout}) {
		subject := subjectOf(d) + ", node " + p.Node
		if p.Err == nil {
			found = append(found, Finding{subject, StatusOK, fmt.Sprintf("answers, and has %d fields to aggregate", p.Fields), ""})
			continue
		}
		found = append(found, Finding{subject, StatusWarn, core.MessageOf(p.Err), core.HintOf(p.Err)})
	}
	return found
}

// defaultIndices are the indices that have a catalogue of their own where no folder is given.
func defaultIndices(repositories []config.Repository) []definition.DefaultIndex {
	var indices []definition.DefaultIndex
	for _, r := range repositories {
		documentType := "analysis"
		if r.Type == core.TypeLyric {
			documentType = "record"
		}
		indices = append(indices, definition.DefaultIndex{Alias: r.IndexName, DocumentType: documentType})
	}
	return indices
}

func subjectOf(d definition.Definition) string { return "catalogue " + d.ID }

// written gives what is wrong with a catalogue as it is written, each fault by itself.
func written(d definition.Definition) []Finding {
	if d.Err == nil {
		return nil
	}
	found := []Finding{{subjectOf(d), StatusFail, d.Err.Message, d.Err.Hint}}
	for _, v := range d.Err.Violations {
		if v.Message != d.Err.Message {
			found = append(found, Finding{subjectOf(d), StatusFail, v.Message, ""})
		}
	}
	return found
}

// sound tells what a catalogue is. more continues the sentence, after a semicolon.
func sound(d definition.Definition, more string) Finding {
	message := fmt.Sprintf("documents of type %s in index %s", d.DocumentType, d.Index)
	if more != "" {
		message += "; " + more
	}
	return Finding{subjectOf(d), StatusOK, message, ""}
}

func warnings(subject string, texts []string) []Finding {
	var found []Finding
	for _, text := range texts {
		found = append(found, Finding{subject, StatusWarn, text, ""})
	}
	return found
}

// judge tells what the index says to catalogues.
type judge interface {
	// indexed looks at the index of a catalogue that is written as it should be. It gives at least one finding.
	indexed(ctx context.Context, d definition.Definition) []Finding
	close()
}

func judgeOf(cfg config.Config, opts Options) judge {
	var aliases []string
	for _, r := range cfg.Repositories {
		aliases = append(aliases, r.IndexName)
	}
	if cfg.Index.URL == "" {
		return embeddedJudge{aliases}
	}
	return newEngineJudge(cfg.Index, opts, aliases)
}

// embeddedJudge knows of an embedded index what the configuration says: its folder is locked while tutti runs, and a lock
// taken only to look would keep out a tutti that starts.
type embeddedJudge struct{ aliases []string }

func (j embeddedJudge) indexed(_ context.Context, d definition.Definition) []Finding {
	if slices.Contains(j.aliases, d.Index) {
		return []Finding{sound(d, "its fields are read from the embedded index when tutti runs")}
	}
	return []Finding{{
		subjectOf(d), StatusWarn, "no repository writes to index " + d.Index + ", and nobody else writes to the embedded index",
		"set esIndex to what a repository has as its indexName: " + strings.Join(j.aliases, ", "),
	}}
}

func (embeddedJudge) close() {}
