package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tutti/http/search"
	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/federation"
)

const subjectCatalogues = "catalogues"

// Catalogues checks a folder of catalogues. It reports each catalogue with its errors and warnings. If fieldsOf is not nil, it
// returns the fields of a catalogue as a server describes them; no other service is called.
func Catalogues(dir string, fieldsOf func(id string) ([]core.CatalogueField, error)) Report {
	set, err := definition.Load(dir, definition.Options{Reserved: search.ReservedIDs()})
	if err != nil {
		return NewReport([]Finding{{subjectCatalogues, StatusFail, core.MessageOf(err) + ": " + dir, core.HintOf(err)}})
	}
	found := warnings(subjectCatalogues, set.Warnings)
	for _, d := range set.Definitions {
		found = append(found, definitionFindings(d)...)
		if d.Err == nil {
			found = append(found, catalogueFinding(d, "the index was not read"))
		}
		if d.Err == nil && fieldsOf != nil {
			fields, err := fieldsOf(d.ID)
			found = append(found, undeclaredLists(d, fields, err)...)
		}
		found = append(found, warnings(subjectOf(d), d.Warnings)...)
	}
	return NewReport(found)
}

// undeclaredLists warns about fields that hold several values in the index but are not declared as lists in the catalogue.
func undeclaredLists(d definition.Definition, fields []core.CatalogueField, err error) []Finding {
	if err != nil {
		return []Finding{{subjectOf(d), StatusWarn, "cannot determine which fields hold several values: " + core.MessageOf(err), core.HintOf(err)}}
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

// cataloguesProbe checks the catalogues of the configuration, each against its index.
func cataloguesProbe(cfg config.Config, opts Options) probe {
	return func(ctx context.Context) []Finding {
		set, err := settings.Definitions(cfg)
		if err != nil {
			return []Finding{{subjectCatalogues, StatusFail, core.MessageOf(err), core.HintOf(err)}}
		}
		if cfg.Catalogues.Dir == "" {
			var found []Finding
			for _, d := range set.Definitions {
				found = append(append(found, definitionFindings(d)...), DefaultAccess(cfg.Auth, d)...)
			}
			return found
		}
		checker := newCatalogueChecker(cfg, opts)
		defer checker.close()
		found := warnings(subjectCatalogues, set.Warnings)
		for _, d := range set.Definitions {
			found = append(found, definitionFindings(d)...)
			if d.Err == nil {
				found = append(found, checker.indexed(ctx, d)...)
				found = append(found, scopesWithoutAuth(cfg.Auth, d)...)
				found = append(found, DefaultAccess(cfg.Auth, d)...)
				found = append(found, nodes(ctx, d, opts)...)
			}
			found = append(found, warnings(subjectOf(d), d.Warnings)...)
		}
		return found
	}
}

// scopesWithoutAuth warns about a catalogue with an access rule when auth.mode is none.
func scopesWithoutAuth(cfg config.Auth, d definition.Definition) []Finding {
	if d.Access == nil || cfg.Mode != config.ModeNone {
		return nil
	}
	message := "access.json requires scopes, and with auth.mode none no caller has any: only documents that match its public filter are visible"
	if d.Access.Public == nil {
		message = "access.json requires scopes, and with auth.mode none no caller has any: no document is visible"
	}
	return []Finding{{subjectOf(d), StatusWarn, message, "set auth.mode: token, or remove access.json if all documents are public"}}
}

// DefaultAccess returns a finding that says who can read a catalogue without an access rule. It returns none for a catalogue that
// has a rule or an error, and none when auth.mode is none and the catalogue is public.
func DefaultAccess(cfg config.Auth, d definition.Definition) []Finding {
	if d.Access != nil || d.Err != nil || cfg.Mode == config.ModeNone && d.DefaultAccess == core.AccessPublic {
		return nil
	}
	rule := "add an access.json to the catalogue's folder"
	if d.Folder == "" {
		rule = "add a folder with an access.json for the index to catalogues.dir"
	}
	found := Finding{Subject: subjectOf(d), Status: StatusOK}
	switch {
	case d.DefaultAccess == core.AccessPublic:
		found.Status, found.Message = StatusWarn, "anyone can read it without a token"
		found.Hint = rule + ", or set auth.defaultAccess: authenticated"
	case d.DefaultAccess == core.AccessAuthenticated:
		found.Message = "anyone with a valid token can read it"
	case cfg.Mode == config.ModeNone:
		found.Status, found.Message = StatusWarn, "no caller can read it, because with auth.mode none no caller has a scope"
		found.Hint = rule + ", set auth.mode: token, or set auth.defaultAccess: public"
	default:
		found.Message = "only tokens with the scope " + cfg.SystemScope + cfg.WriteSuffix + " can read it"
	}
	found.Message = fmt.Sprintf("no access.json: %s (auth.defaultAccess: %s)", found.Message, d.DefaultAccess)
	return []Finding{found}
}

// nodes probes the remote nodes of a catalogue's federation.
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

func subjectOf(d definition.Definition) string { return "catalogue " + d.ID }

// definitionFindings returns one finding for each error in a catalogue's files.
func definitionFindings(d definition.Definition) []Finding {
	if text := KeptPaths(d); text != "" {
		return []Finding{{subjectOf(d), StatusWarn, text, "another catalogId in base.json, if people are to tell them apart"}}
	}
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

// KeptPaths says that a catalogue has the name of a route that is newer than it, "" if it has not.
func KeptPaths(d definition.Definition) string {
	if d.Err != nil || !slices.Contains(search.YieldingIDs(), d.ID) {
		return ""
	}
	return "GET /" + d.ID + " is a route of the server; the catalogue keeps its id and all its paths"
}

// catalogueFinding returns the finding for a valid catalogue. more is appended to its message after a semicolon.
func catalogueFinding(d definition.Definition, more string) Finding {
	return Finding{subjectOf(d), StatusOK, fmt.Sprintf("documents of type %s in index %s; %s", d.DocumentType, d.Index, more), ""}
}

func warnings(subject string, texts []string) []Finding {
	var found []Finding
	for _, text := range texts {
		found = append(found, Finding{subject, StatusWarn, text, ""})
	}
	return found
}

// catalogueChecker checks catalogues against the index.
type catalogueChecker interface {
	// indexed checks a catalogue whose files are valid against its index. It returns at least one finding.
	indexed(ctx context.Context, d definition.Definition) []Finding
	close()
}

func newCatalogueChecker(cfg config.Config, opts Options) catalogueChecker {
	var aliases []string
	for _, r := range cfg.Repositories {
		aliases = append(aliases, r.IndexName)
	}
	if cfg.Index.URL == "" {
		return embeddedChecker{aliases}
	}
	return newEngineChecker(cfg.Index, opts, aliases)
}

// embeddedChecker checks catalogues against the configuration only. It does not open the embedded index: that would take its
// lock, which would keep a starting tutti from running.
type embeddedChecker struct{ aliases []string }

func (j embeddedChecker) indexed(_ context.Context, d definition.Definition) []Finding {
	if slices.Contains(j.aliases, d.Index) {
		return []Finding{catalogueFinding(d, "its fields are read from the embedded index when tutti runs")}
	}
	return []Finding{{
		subjectOf(d), StatusWarn, "no repository writes to index " + d.Index + ", and nothing else writes to the embedded index",
		"set esIndex to the indexName of a repository: " + strings.Join(j.aliases, ", "),
	}}
}

func (embeddedChecker) close() {}
