package metadata

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/store"
)

// ownIDs are the members of a sample's parts that Song adds; they are not exported.
var ownIDs = map[string][]string{
	"": {"sampleId", "specimenId"}, "specimen": {"specimenId", "donorId", "sampleId"}, "donor": {"donorId", "studyId"},
}

// ExportStudy calls each for all analyses of a study, with the payload that could be submitted again as Body. An Analysis is valid
// until each returns. CodeNotFound for an unknown study.
func (r *Repository) ExportStudy(ctx context.Context, study string, each func(core.Analysis) error) error {
	all := []core.AnalysisState{core.StatePublished, core.StateSuppressed, core.StateUnpublished}
	_, err := r.Page(ctx, study, all, 0, 0, func(a core.Analysis) error {
		a.Body = exported(a.Body)
		return each(a)
	})
	return err
}

// ExportAnalysis returns an analysis of any study with the payload that could be submitted again as Body. CodeNotFound
// (analysis.id.not.found) when there is none.
func (r *reader) ExportAnalysis(ctx context.Context, id string) (core.Analysis, error) {
	a, err := r.FindAnalysis(ctx, id)
	if err != nil {
		return core.Analysis{}, err
	}
	if a, err = r.Analysis(ctx, a.Study, id); err == nil {
		a.Body = exported(a.Body)
	}
	return a, err
}

// FindAnalysis returns the study and the state of an analysis, without its Body. CodeNotFound (analysis.id.not.found) when there is
// none.
func (r *reader) FindAnalysis(ctx context.Context, id string) (core.Analysis, error) {
	if !storable(id) {
		return core.Analysis{}, analysisNotFound()
	}
	a := core.Analysis{ID: id}
	err := r.store.Read().QueryRowContext(ctx, "SELECT study, state FROM analysis WHERE id = $1", id).Scan(&a.Study, &a.State)
	if errors.Is(err, sql.ErrNoRows) {
		return core.Analysis{}, analysisNotFound()
	}
	return a, store.WrapError("finding an analysis", err)
}

// exported returns the payload of a stored analysis: without the repository's own members and ids, and without empty members of its
// files and samples.
func exported(body []byte) []byte {
	d := parseDocument(body)
	p, err := newPayload(d.submission(true))
	if err != nil {
		return body // not reached: rejected when it was submitted
	}
	p.doc = ""
	for i := range p.files {
		p.files[i].members = slices.DeleteFunc(p.files[i].members, isEmpty)
	}
	for i, m := range p.members {
		if m.name == "samples" {
			p.members[i].value = exportedSamples(gjson.Parse(m.value))
		}
	}
	return []byte(p.validationInput())
}

// isEmpty reports whether the value of a member is null or empty.
func isEmpty(m member) bool {
	return m.value == "null" || m.value == `""` || m.value == "[]" || m.value == "{}"
}

// exportedSamples returns a list of samples without the ids that Song adds; other values are returned unchanged.
func exportedSamples(samples gjson.Result) string {
	if !samples.IsArray() {
		return samples.Raw
	}
	list := []byte{'['}
	samples.ForEach(func(_, sample gjson.Result) bool {
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, exportedPart("", sample)...)
		return true
	})
	return string(append(list, ']'))
}

// exportedPart returns a sample, or its specimen or donor, without the ids that Song adds.
func exportedPart(part string, object gjson.Result) string {
	if !object.IsObject() {
		return object.Raw
	}
	members := slices.DeleteFunc(membersOf(object), func(m member) bool { return slices.Contains(ownIDs[part], m.name) })
	for i, m := range members {
		if part == "" && (m.name == "specimen" || m.name == "donor") {
			members[i].value = exportedPart(m.name, gjson.Parse(m.value))
		}
	}
	return string(append(appendMembers([]byte{'{'}, slices.DeleteFunc(members, isEmpty)), '}'))
}
