package metadata

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// maxPattern is the maximum length in bytes of an expression of a search by ids.
const maxPattern = 1000

// SearchIDs calls each for the analyses of a study in some states that have a sample and a file with matching ids, in the order of
// their submission. An Analysis is valid until each returns. It reads all analyses of the study, unless the search is for the complete
// object id of a file that the study has. Errors: CodeNotFound for an unknown study, CodeInvalid (search.term.syntax) for a bad expression.
func (r *Repository) SearchIDs(ctx context.Context, study string, states []datamodel.AnalysisState, search datamodel.IDSearch,
	each func(datamodel.Analysis) error,
) error {
	if search == (datamodel.IDSearch{FileID: search.FileID}) && uuid.Validate(search.FileID) == nil {
		if found, err := r.analysisWithFile(ctx, study, states, search.FileID, each); found || err != nil {
			return err
		}
	}
	m, err := newIDMatcher(study, search)
	if err != nil {
		return err
	}
	_, err = r.Page(ctx, study, states, 0, 0, func(a datamodel.Analysis) error {
		if !m.matches(a.Body) {
			return nil
		}
		return each(a)
	})
	return err
}

// analysisWithFile calls each for the analysis that has a file, if it is in one of the states, and reports whether there is one.
func (r *Repository) analysisWithFile(ctx context.Context, study string, states []datamodel.AnalysisState, objectID string,
	each func(datamodel.Analysis) error,
) (found bool, err error) {
	id, err := r.analysisOfFile(ctx, study, objectID)
	if e, ok := errors.AsType[*core.Error](err); ok && e.ErrorID == idNoFile {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a, err := r.Analysis(ctx, study, id)
	if err != nil || !slices.Contains(states, a.State) {
		return true, err
	}
	return true, each(a)
}

// idMatcher matches analyses of a study by the ids of their samples and files; nil expressions match everything.
type idMatcher struct {
	study                                                    string
	donor, specimen, sample                                  *regexp.Regexp
	submitterDonor, submitterSpecimen, submitterSample, file *regexp.Regexp
}

func newIDMatcher(study string, s datamodel.IDSearch) (*idMatcher, error) {
	m := &idMatcher{study: study}
	for _, e := range []struct {
		name, pattern string
		into          **regexp.Regexp
	}{
		{"donorId", s.DonorID, &m.donor},
		{"specimenId", s.SpecimenID, &m.specimen},
		{"sampleId", s.SampleID, &m.sample},
		{"submitterDonorId", s.SubmitterDonorID, &m.submitterDonor},
		{"submitterSpecimenId", s.SubmitterSpecimenID, &m.submitterSpecimen},
		{"submitterSampleId", s.SubmitterSampleID, &m.submitterSample},
		{"fileId", s.FileID, &m.file},
	} {
		if e.pattern == "" {
			continue
		}
		compiled, err := regexp.Compile("(?i)" + e.pattern)
		if err != nil || len(e.pattern) > maxPattern {
			invalid := newError(core.CodeInvalid, idSearchTerm, e.name+" is not a regular expression of at most 1000 bytes (RE2)")
			invalid.Err = err
			return nil, invalid
		}
		*e.into = compiled
	}
	return m, nil
}

// matches reports whether an analysis has a matching sample, unless every sample matches, and a matching file.
func (m *idMatcher) matches(body []byte) bool {
	found := gjson.GetManyBytes(body, "samples", "files")
	anySample := m.donor == nil && m.specimen == nil && m.sample == nil &&
		m.submitterDonor == nil && m.submitterSpecimen == nil && m.submitterSample == nil
	return (anySample || contains(found[0], m.matchesSample)) &&
		(m.file == nil || contains(found[1], func(f gjson.Result) bool { return m.file.MatchString(f.Get("objectId").Str) }))
}

// contains reports whether an array has an element for which fits returns true.
func contains(list gjson.Result, fits func(gjson.Result) bool) bool {
	found := false
	list.ForEach(func(_, element gjson.Result) bool {
		found = element.IsObject() && fits(element)
		return !found
	})
	return found
}

func (m *idMatcher) matchesSample(sample gjson.Result) bool {
	for _, part := range []struct {
		object                    gjson.Result
		id, submitterID           string
		pattern, submitterPattern *regexp.Regexp
	}{
		{sample, "sampleId", "submitterSampleId", m.sample, m.submitterSample},
		{sample.Get("specimen"), "specimenId", "submitterSpecimenId", m.specimen, m.submitterSpecimen},
		{sample.Get("donor"), "donorId", "submitterDonorId", m.donor, m.submitterDonor},
	} {
		submitted := part.object.Get(part.submitterID).Str
		if part.submitterPattern != nil && !part.submitterPattern.MatchString(submitted) {
			return false
		}
		if part.pattern == nil {
			continue
		}
		id := part.object.Get(part.id).Str
		if id == "" && submitted != "" {
			id = uuid.NewSHA1(uuid.NameSpaceOID, []byte(m.study+":"+submitted)).String() // as Song's local id service makes it
		}
		if !part.pattern.MatchString(id) {
			return false
		}
	}
	return true
}
