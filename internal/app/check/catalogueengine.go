package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/elastic"
	"tutti/internal/search/catalogue"
	"tutti/internal/search/catalogue/definition"
)

// engineChecker checks catalogues against the mappings of an Elasticsearch. It never writes.
type engineChecker struct {
	cfg config.Index
	// aliases are the aliases that repositories write to.
	aliases []string
	// engine is nil when it cannot be used; unusable says why.
	engine   *elastic.Index
	unusable *core.CatalogueProblem
}

func newEngineChecker(cfg config.Index, opts Options, aliases []string) *engineChecker {
	j := &engineChecker{cfg: cfg, aliases: aliases}
	of := settings.Connection(cfg)
	of.Timeout = opts.Timeout
	engine, err := elastic.New(elastic.Config{Connection: of})
	if err != nil {
		j.unusable = &core.CatalogueProblem{Code: core.CatalogueConnectionError, Message: core.MessageOf(err)}
		return j
	}
	j.engine = engine
	return j
}

func (j *engineChecker) close() {
	if j.engine != nil {
		_ = j.engine.Close() // nothing was written
	}
}

func (j *engineChecker) indexed(ctx context.Context, d definition.Definition) []Finding {
	model, problem := j.load(ctx, d)
	if problem == nil {
		found := []Finding{catalogueFinding(d, count(len(model.Catalogue().Fields), "field", "fields"))}
		fields, err := j.sampled(ctx, model)
		found = append(found, undeclaredLists(d, fields, err)...)
		return append(found, warnings(subjectOf(d), model.Warnings())...)
	}
	if problem.Code == core.CatalogueConnectionError {
		// Do not wait again for each of the other catalogues.
		j.unusable = problem
	}
	if problem.Code == core.CatalogueIndexNotFound && slices.Contains(j.aliases, d.Index) {
		return []Finding{catalogueFinding(d, "the index will be created")}
	}
	return []Finding{{subjectOf(d), StatusFail, problem.Message, j.hint(ctx, d, problem.Code)}}
}

// load builds the model of a catalogue. It tries each node until one answers.
func (j *engineChecker) load(ctx context.Context, d definition.Definition) (model *catalogue.Model, problem *core.CatalogueProblem) {
	if j.unusable != nil {
		return nil, j.unusable
	}
	for range j.cfg.URLs() {
		model, problem = catalogue.Load(ctx, d, j.engine)
		if problem == nil || problem.Code != core.CatalogueConnectionError {
			break
		}
	}
	return model, problem
}

// sampled returns the fields of a model, with multiValued set from a sample of the documents. It tries each node until one answers.
func (j *engineChecker) sampled(ctx context.Context, model *catalogue.Model) (fields []core.CatalogueField, err error) {
	for range j.cfg.URLs() {
		fields, err = model.Sampled(ctx, j.engine)
		if err == nil || core.CodeOf(err) != core.CodeUnavailable {
			break
		}
	}
	return fields, err
}

// hint returns how to fix a catalogue that cannot be used.
func (j *engineChecker) hint(ctx context.Context, d definition.Definition, code core.CatalogueCode) string {
	switch code {
	case core.CatalogueIndexNotFound:
		return "create it, or set esIndex to an existing index or to one that a repository writes to"
	case core.CataloguePermissionDenied:
		if j.cfg.Username == "" && j.cfg.APIKey == "" {
			return "set index.username and index.password, or index.apiKey"
		}
		read := privileges("").Read
		if engine, err := j.engine.Engine(ctx); err == nil {
			read = engine.Privileges.Read
		}
		return fmt.Sprintf("check the credentials of the index, and grant the user's role the privileges %s on %s", strings.Join(read, ", "), d.Index)
	case core.CatalogueConnectionError:
		return "see the findings for the index"
	case core.CatalogueMappingFetch:
		return "check the cluster's log, and the log of a proxy in front of it"
	case core.CatalogueSchemaBuild:
		return "fix the catalogue's configuration, or the mapping of its index"
	default:
		return ""
	}
}
