package check

import (
	"context"
	"fmt"
	"slices"

	"tutti/internal/catalogue"
	"tutti/internal/catalogue/definition"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index/elastic"
)

// engineJudge asks an Elasticsearch for the mappings of catalogues. It never writes.
type engineJudge struct {
	cfg config.Index
	// aliases are those that repositories write to.
	aliases []string
	// engine is nil when it cannot be asked, which unusable says.
	engine   *elastic.Index
	unusable *core.CatalogueProblem
}

func newEngineJudge(cfg config.Index, opts Options, aliases []string) *engineJudge {
	j := &engineJudge{cfg: cfg, aliases: aliases}
	of := engineConfig(cfg)
	of.Timeout = opts.Timeout
	engine, err := elastic.New(of)
	if err != nil {
		j.unusable = &core.CatalogueProblem{Code: core.CatalogueConnectionError, Message: core.MessageOf(err)}
		return j
	}
	j.engine = engine
	return j
}

func (j *engineJudge) close() {
	if j.engine != nil {
		_ = j.engine.Close() // nothing was written
	}
}

func (j *engineJudge) indexed(ctx context.Context, d definition.Definition) []Finding {
	model, problem := j.look(ctx, d)
	if problem == nil {
		found := []Finding{sound(d, count(len(model.Catalogue().Fields), "field", "fields"))}
		fields, err := j.sampled(ctx, model)
		found = append(found, undeclared(d, fields, err)...)
		return append(found, warnings(subjectOf(d), model.Warnings())...)
	}
	if problem.Code == core.CatalogueConnectionError {
		// The others would wait in vain as well.
		j.unusable = problem
	}
	if problem.Code == core.CatalogueIndexNotFound && slices.Contains(j.aliases, d.Index) {
		return []Finding{sound(d, "the index will be made")}
	}
	return []Finding{{subjectOf(d), StatusFail, problem.Message, j.mend(d, problem.Code)}}
}

// look makes the model of a catalogue. A node that does not answer is gone around: each is given the chance to.
func (j *engineJudge) look(ctx context.Context, d definition.Definition) (model *catalogue.Model, problem *core.CatalogueProblem) {
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

// sampled returns the fields of a model as a sample of the documents shows them. As look, it tries each node.
func (j *engineJudge) sampled(ctx context.Context, model *catalogue.Model) (fields []core.CatalogueField, err error) {
	for range j.cfg.URLs() {
		fields, err = model.Sampled(ctx, j.engine)
		if err == nil || core.CodeOf(err) != core.CodeUnavailable {
			break
		}
	}
	return fields, err
}

// mend says how to mend what keeps a catalogue from being used.
func (j *engineJudge) mend(d definition.Definition, code core.CatalogueCode) string {
	switch code {
	case core.CatalogueIndexNotFound:
		return fmt.Sprintf("make the index %s, or set esIndex to one that is there or that a repository writes to", d.Index)
	case core.CataloguePermissionDenied:
		if j.cfg.Username == "" && j.cfg.APIKey == "" {
			return "set index.username and index.password, or index.apiKey"
		}
		return fmt.Sprintf("check the credentials of the index, and give the user's role the privileges read and view_index_metadata on %s", d.Index)
	case core.CatalogueConnectionError:
		return "see what is said of the index"
	case core.CatalogueMappingFetch:
		return "look at the cluster's log, and at that of a proxy before it"
	case core.CatalogueSchemaBuild:
		return "mend the catalogue's configuration, or the mapping of its index"
	default:
		return ""
	}
}
