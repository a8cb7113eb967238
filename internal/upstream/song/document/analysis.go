package document

import (
	"tutti/internal/base/jsontext"
	"tutti/internal/core"
)

// Names of the members that several documents have.
const (
	memberFiles        = "files"
	memberStudy        = "studyId"
	memberRepositories = "repositories"
)

// Analysis appends Maestro 5's document of an analysis to dst: it has the whole record as the member analysis, and the record's
// id, study and state. block is the document's member repositories.
func Analysis(dst []byte, rec core.Record, block []byte) []byte {
	dst = jsontext.AppendString(append(dst, `{"analysisId":`...), rec.ID)
	dst = jsontext.AppendString(append(dst, `,"studyId":`...), rec.Organization)
	if rec.State != "" {
		dst = jsontext.AppendString(append(dst, `,"state":`...), rec.State)
	}
	dst = append(append(dst, `,"analysis":`...), rec.Body...)
	dst = append(append(dst, `,"repositories":`...), block...)
	return append(dst, '}')
}
